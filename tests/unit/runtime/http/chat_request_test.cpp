// Goal: a chat's body becomes messages and a frame, and its answer's parts go where clients look
// for them. Method: bodies and answers by hand, the small model's tokenizer.
#include "runtime/http/chat_request.hpp"

#include <boost/test/unit_test.hpp>

#include "runtime/http/order.hpp"

using namespace cedar;
using namespace cedar::http;

namespace {

const text::tokenizer& vocabulary() {
  static const auto loaded =
      text::tokenizer::load(CEDAR_SOURCE_DIR "/configs/models/cedar-tiny/tokenizer.json");
  return *loaded;
}

chat_ask accepted(const std::string& members) {
  auto read = parse_chat(R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}])" +
                         members + "}");
  BOOST_REQUIRE_MESSAGE(read, (read ? "" : read.error().message));
  return std::move(*read);
}

api_error refused(const std::string& body) {
  const auto read = parse_chat(body);
  BOOST_REQUIRE(!read);
  return read.error();
}

/// All that an answer to a chat gives for `text`, token by token.
answer_delta answered(const std::string& text, text::chat_mode mode,
                      const std::vector<std::string>& stops = {}, const std::string& begun = {}) {
  answer made(vocabulary(), {.stops = stops, .chat = mode, .begun = begun});
  answer_delta out;
  const auto add = [&](answer_delta more) {
    out.text += more.text;
    out.reasoning += more.reasoning;
    std::ranges::move(more.calls, std::back_inserter(out.calls));
  };
  const auto ids = *vocabulary().encode(text, text::control_strings::tokens);
  for (const token_id id : ids) add(made.push({id, 0}));
  add(made.finish());
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(chat_request)

BOOST_AUTO_TEST_CASE(answers_at_once_unless_asked_to_reason) {
  BOOST_TEST((accepted("").frame.mode == text::chat_mode::chat));
  BOOST_TEST(!accepted("").new_tokens_max.has_value());
  const chat_ask low = accepted(R"(, "reasoning_effort": "low")");
  BOOST_TEST((low.frame.mode == text::chat_mode::thinking));
  BOOST_TEST(low.frame.effort == 50U);
  BOOST_TEST((accepted(R"(, "reasoning_effort": "none")").frame.mode == text::chat_mode::chat));
  BOOST_TEST(
      (accepted(R"(, "thinking": {"type": "enabled"})").frame.mode == text::chat_mode::thinking));
}

BOOST_AUTO_TEST_CASE(takes_efforts_by_name_and_number) {
  for (const auto& [word, effort] : {std::pair{R"("low")", 50U},
                                     {R"("high")", 75U},
                                     {R"("max")", 100U},
                                     {"1", 1U},
                                     {"100", 100U}}) {
    const chat_ask ask = accepted(R"(, "reasoning_effort": )" + std::string(word));
    BOOST_TEST((ask.frame.mode == text::chat_mode::thinking));
    BOOST_TEST(ask.frame.effort == effort, word);
  }
}

BOOST_AUTO_TEST_CASE(begins_the_call_that_tool_choice_names) {
  const auto choosing = [](const std::string& choice, const std::string& more = "") {
    return R"(, "tools": [{"type": "function", "function": {"name": "look"}}], "tool_choice": )" +
           choice + more;
  };
  const std::string look = R"({"type": "function", "function": {"name": "look"}})";
  const chat_ask ask = accepted(choosing(look));
  BOOST_REQUIRE(ask.frame.calling.has_value());
  BOOST_TEST(ask.frame.calling->qualified() == "look");

  const auto plain = text::encode_prompt(accepted(choosing(R"("auto")")).messages, {});
  const auto begun = text::encode_prompt(ask.messages, ask.frame);
  BOOST_REQUIRE(plain.has_value());
  BOOST_REQUIRE(begun.has_value());
  const auto joined = [](const std::vector<text::prompt_piece>& pieces) {
    std::string out;
    for (const text::prompt_piece& piece : pieces) out += piece.text;
    return out;
  };
  const std::string begin = text::begun_call(*ask.frame.calling);
  BOOST_TEST(joined(*begun) == joined(*plain) + begin);

  // What the model adds to it is a call, as if it had written all of it.
  const std::string rest =
      "<｜DSML｜ parameter name=\"at\" string=\"true\">the sky</｜DSML｜ parameter>\n"
      "</｜DSML｜ invoke>\n</｜DSML｜ calls>";
  const answer_delta made = answered(rest, text::chat_mode::chat, {}, begin);
  BOOST_TEST(made.text.empty());
  BOOST_REQUIRE(!made.calls.empty());
  BOOST_TEST(made.calls.front().name == "look");
  std::string arguments;
  for (const call_part& part : made.calls) arguments += part.arguments;
  BOOST_TEST(nlohmann::json::parse(arguments) == nlohmann::json({{"at", "the sky"}}));
  // One that stops at once has called without parameters.
  BOOST_TEST(answered("", text::chat_mode::chat, {}, begin).calls.front().name == "look");
}

BOOST_AUTO_TEST_CASE(refuses_tool_choices_that_cannot_be) {
  const std::string tools = R"(, "tools": [{"type": "function", "function": {"name": "look"}}])";
  const auto named = [](const std::string& name) {
    return R"(, "tool_choice": {"type": "function", "function": {"name": ")" + name + R"("}})";
  };
  const std::string unknown = "tool_choice.function.name";
  const std::pair<std::string, std::string> cases[] = {
      {tools + named("leap"), unknown},
      {named("look"), unknown},
      {tools + named(R"(look\n)"), unknown},
      {tools + R"(, "tool_choice": "look")", "tool_choice"},
      {tools + R"(, "tool_choice": {"type": "function"})", "tool_choice"},
      {tools + R"(, "tool_choice": 7)", "tool_choice"},
      {tools + named("look") + R"(, "thinking": {"type": "enabled"})", "tool_choice"},
  };
  for (const auto& [wrong, param] : cases)
    BOOST_TEST(
        refused(R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}])" + wrong + "}")
                .param == param,
        wrong);
}

BOOST_AUTO_TEST_CASE(puts_tools_in_front) {
  const std::string tool =
      R"([{"type": "function", "function": {"name": "look", "parameters": {}}}])";
  const chat_ask ask = accepted(R"(, "tools": )" + tool);
  BOOST_REQUIRE_EQUAL(ask.messages.size(), 2U);
  BOOST_TEST((ask.messages[0].role == text::chat_role::system));
  BOOST_TEST(ask.messages[0].tools.size() == 1U);
  BOOST_TEST(accepted(R"(, "tool_choice": "none", "tools": )" + tool).messages.size() == 1U);
}

BOOST_AUTO_TEST_CASE(takes_what_changes_nothing) {
  const chat_ask ask = accepted(R"(, "response_format": {"type": "text"}, "modalities": ["text"],
      "prediction": {"type": "content", "content": "x"}, "parallel_tool_calls": false,
      "prompt_cache_retention": "24h", "store": false, "metadata": {}, "user": "u")");
  BOOST_TEST(ask.messages.size() == 1U);
}

BOOST_AUTO_TEST_CASE(names_the_wrong_member) {
  const std::string begin = R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}], )";
  const std::pair<std::string, const char*> cases[] = {
      {R"({"model": "m"})", "messages"},
      {R"({"model": "m", "messages": [{"role": "nobody", "content": "x"}]})", "messages[0].role"},
      {R"({"model": "m", "messages": {}})", "messages"},
      {R"({"model": "m", "messages": [{"role": "user", "content": "x"}, {"role": "user", "content":
           [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": 1}}]}]})",
       "messages[1].content[1].image_url.url"},
      {R"({"model": "m", "messages": [{"role": "tool", "content": "x", "tool_call_id": "a"}]})",
       "messages[0].tool_call_id"},
      {R"({"model": "m", "messages": [{"role": "assistant", "tool_calls": [{"function": {"name":
           "f", "arguments": 7}}]}]})",
       "messages[0].tool_calls[0].function.arguments"},
      {begin + R"("reasoning_effort": "huge"})", "reasoning_effort"},
      {begin + R"("thinking": true})", "thinking"},
      {begin + R"("response_format": {"type": "json_object"}})", "response_format"},
      {begin + R"("modalities": ["text", "audio"]})", "modalities"},
      {begin + R"("top_logprobs": 2})", "top_logprobs"},
      {begin + R"("tools": [1]})", "tools[0]"},
      {begin + R"("tools": [{"function": {"name": "f"}}, {"function": {"name": "a b"}}]})",
       "tools[1].function.name"},
      {begin + R"("tools": [{"function": {"name": "f"}}, {"function": {"name": "f"}}]})",
       "tools[1].function.name"},
      {begin + R"("tools": {}})", "tools"},
      {begin + R"("tools": [{"type": "function", "function": {"name": "f", "parameters": 3}}]})",
       "tools[0].function.parameters"},
      {begin + R"("tools": [{"type": "function", "function": {"name": "f", "parameters":
           {"properties": {"a": {"type": "text"}}}}}]})",
       "tools[0].function.parameters.properties.a.type"},
      {begin + R"("tool_choice": "required"})", "tool_choice"},
      {begin + R"("reasoning_effort": 0})", "reasoning_effort"},
      {begin + R"("reasoning_effort": 101})", "reasoning_effort"},
      {begin + R"("reasoning_effort": "50"})", "reasoning_effort"},
      {begin + R"("max_completion_tokens": 0})", "max_completion_tokens"},
      {begin + R"("min_tokens": -1})", "min_tokens"},
      {begin + R"("prompt": "x"})", "prompt"},
  };
  for (const auto& [body, param] : cases) BOOST_TEST(refused(body).param == param, body);
}

// What only the order finds out has the path that the message has in the body, tools or not.
BOOST_AUTO_TEST_CASE(names_the_member_that_does_not_suit_its_message) {
  const served_model model{"m", "f", 1, {}};
  const session::service_limits limits{2048, 2048};
  const std::string begin = R"({"model": "m", "messages": [{"role": "user", "content": "a"},)";
  const std::string tools =
      R"(, "tools": [{"type": "function", "function": {"name": "look", "parameters": {}}}])";
  const std::pair<const char*, const char*> cases[] = {
      {R"({"role": "user", "content": "b", "reasoning_content": "r"}])",
       "messages[1].reasoning_content"},
      {R"({"role": "system", "content": "b", "task": "title"}])", "messages[1].task"},
      {R"({"role": "assistant", "content": "b", "wo_eos": true}, {"role": "user", "content": "c"}])",
       "messages[1].wo_eos"},
  };
  for (const auto& [messages, param] : cases)
    for (const std::string& more : {std::string(), tools}) {
      const auto ask = parse_chat(begin + messages + more + "}");
      BOOST_REQUIRE_MESSAGE(ask, (ask ? "" : ask.error().message));
      const auto order = order_maker(model, vocabulary(), limits).make(*ask);
      BOOST_REQUIRE(!order);
      BOOST_TEST(order.error().status == 400U);
      BOOST_TEST(order.error().param == param);
    }
}

BOOST_AUTO_TEST_CASE(frames_a_turn_as_the_chat_format_does) {
  const served_model model{"m", "f", 1, {}};
  const session::service_limits limits{2048, 2048};
  const auto order = order_maker(model, vocabulary(), limits).make(accepted(""));
  BOOST_REQUIRE_MESSAGE(order, (order ? "" : order.error().message));
  const auto expected = *vocabulary().encode(
      "<｜begin▁of▁sentence｜><｜User｜>Hi<｜Assistant｜></think>", text::control_strings::tokens);
  BOOST_TEST((order->requests.at(0).prompt == expected));
  BOOST_TEST(order->requests.at(0).new_tokens_max == 2048U - expected.size() + 1);
}

BOOST_AUTO_TEST_CASE(keeps_reasoning_apart) {
  const answer_delta both = answered("Let me see.</think>A fox.", text::chat_mode::thinking);
  BOOST_TEST(both.reasoning == "Let me see.");
  BOOST_TEST(both.text == "A fox.");
  const answer_delta plain = answered("A fox.", text::chat_mode::chat);
  BOOST_TEST(plain.reasoning == "");
  BOOST_TEST(plain.text == "A fox.");
  const answer_delta stopped =
      answered("A fox.</think>See a fox.", text::chat_mode::thinking, {" fox"});
  BOOST_TEST(stopped.reasoning == "A fox.");
  BOOST_TEST(stopped.text == "See a");
}

BOOST_AUTO_TEST_SUITE_END()
