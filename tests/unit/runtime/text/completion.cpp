// Goal: answers are taken apart as the released parser does, and nothing that deviates passes.
// Method: its recorded answers; every answer that lacks or repeats one byte of markup; answers
// rendered by prompt_encoding.
#include "runtime/text/completion.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/text/chat_json.hpp"
#include "runtime/text/prompt_encoding.hpp"
#include "tests/unit/runtime/text/fixtures.hpp"

namespace cedar::text {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view eos = "<｜end▁of▁sentence｜>";

const std::string two_parameters =
    "\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n"
    "<｜DSML｜ parameter name=\"a\" string=\"true\">x</｜DSML｜ parameter>\n"
    "<｜DSML｜ parameter name=\"b\" string=\"false\">[1,2]</｜DSML｜ parameter>\n"
    "</｜DSML｜ invoke>\n</｜DSML｜ calls>";

std::string refusal(const std::string& text, chat_mode mode = chat_mode::chat) {
  const auto read = parse_completion(text, mode);
  BOOST_REQUIRE_MESSAGE(!read.has_value(), text);
  BOOST_TEST((read.error().code == errc::malformed));
  return read.error().message;
}

BOOST_AUTO_TEST_SUITE(finished_answers)

BOOST_AUTO_TEST_CASE(all_recorded_answers_agree) {
  const ordered_json cases =
      ordered_json::parse(read_test_file(CEDAR_TEST_DATA "/released/prompt_encoding_vectors.json"))
          .at("parse");
  BOOST_TEST_REQUIRE(cases.size() == 11U);
  for (const ordered_json& one : cases) {
    BOOST_TEST_CONTEXT(one.at("name").get<std::string>()) {
      const bool thinks = one.at("thinking_mode") == "thinking";
      const auto read = parse_completion(one.at("text").get<std::string>(),
                                         thinks ? chat_mode::thinking : chat_mode::chat);
      BOOST_TEST_REQUIRE(read.has_value() == !one.contains("error"));
      if (!read) continue;
      const ordered_json& message = one.at("message");
      BOOST_TEST(read->reasoning == message.at("reasoning_content").get<std::string>());
      BOOST_TEST(read->content == message.at("content").get<std::string>());
      const ordered_json& calls = message.at("tool_calls");
      BOOST_TEST_REQUIRE(read->tool_calls.size() == calls.size());
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const ordered_json& function = calls[i].at("function");
        BOOST_TEST(read->tool_calls[i].name.name == function.at("name").get<std::string>());
        BOOST_TEST(read->tool_calls[i].name.name_space == "");
        BOOST_TEST(read->tool_calls[i].arguments == function.at("arguments").get<std::string>());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(namespaces_come_back_apart) {
  std::string text = two_parameters + std::string(eos);
  text.replace(text.find("\"f\""), 3, "\"ns::f\"");
  BOOST_TEST(
      (parse_completion(text, chat_mode::chat)->tool_calls.at(0).name == tool_name{"ns", "f"}));
  text.replace(text.find("ns::f"), 5, "a::b::f");
  BOOST_TEST(refusal(text).find("'a::b::f'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(every_missing_or_repeated_byte_of_markup_is_noticed) {
  const std::string text =
      "\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n"
      "<｜DSML｜ parameter name=\"a\" string=\"true\">x</｜DSML｜ parameter>\n"
      "</｜DSML｜ invoke>\n</｜DSML｜ calls>" +
      std::string(eos);
  const auto same = [](const completion& read) {
    return read.content.empty() && read.tool_calls.size() == 1 &&
           read.tool_calls[0].name.name == "f" && read.tool_calls[0].arguments == R"({"a": "x"})";
  };
  BOOST_TEST(same(parse_completion(text, chat_mode::chat).value()));
  std::size_t refused = 0;
  for (std::size_t at = 0; at < text.size(); ++at)
    for (const std::string& changed : {text.substr(0, at) + text.substr(at + 1),
                                       text.substr(0, at) + text[at] + text.substr(at)}) {
      const auto read = parse_completion(changed, chat_mode::chat);
      if (read)
        BOOST_TEST(!same(*read), "byte " << at);
      else
        ++refused;
    }
  // Not markup: one more line break before the calls (at two places), a name or a value doubled,
  // the value or the parameter's name left out, the brackets next to the value doubled.
  BOOST_TEST(refused == 2 * text.size() - 9);
}

BOOST_AUTO_TEST_CASE(errors_say_what_and_where) {
  const std::string end(eos);
  BOOST_TEST(refusal("a") == "answer, byte 1: no end of sequence");
  BOOST_TEST(refusal("a" + end + "b") == "answer, byte 1: end of sequence before the end");
  BOOST_TEST(refusal("a" + end, chat_mode::thinking) ==
             "answer, byte 0: the reasoning does not end with </think>");
  BOOST_TEST(refusal("a<think>" + end) ==
             "answer, byte 1: control string <think> inside the content");
  BOOST_TEST(refusal("a<think></think>b" + end, chat_mode::thinking) ==
             "answer, byte 1: control string <think> inside the reasoning");
  BOOST_TEST(refusal(two_parameters + "!" + end).ends_with(": text after the calls"));
  std::string text = two_parameters + end;
  text.replace(text.find("[1,2]"), 5, "[1,");
  BOOST_TEST(refusal(text).ends_with(": the value of 'b' is not JSON"));
  text.replace(text.find("[1,"), 3, std::string("1\0", 2));
  BOOST_TEST(refusal(text).ends_with(": the value of 'b' is not JSON"));
  text = two_parameters + end;
  text.replace(text.find("name=\"b\""), 8, "name=\"a\"");
  BOOST_TEST(refusal(text).ends_with(": parameter 'a' twice"));
  BOOST_TEST(refusal("\n\n<｜DSML｜ calls>\n</｜DSML｜ calls>" + end)
                 .ends_with(": expected <｜DSML｜ invoke name=\""));
}

BOOST_AUTO_TEST_CASE(what_is_rendered_is_read_back) {
  const std::string user = R"({"role": "user", "content": "q"})";
  const std::string answer = R"({"role": "assistant", "content": "c\n", "reasoning_content": " r ",
      "tool_calls": [{"function": {"name": "ns::f", "arguments": {"s": "q\"\\\n</｜DSML｜", "n": 2.5,
      "o": {"x": [null]}}}}, {"function": {"name": "g", "arguments": "{}"}}]})";
  const auto render = [](const std::string& list) {
    std::string out;
    const auto messages = read_messages(ordered_json::parse(list));
    const auto pieces = encode_prompt(*messages, {.mode = chat_mode::thinking});
    for (const prompt_piece& piece : *pieces) out += piece.text;
    return out;
  };
  const std::string asked = render("[" + user + "]");
  const std::string whole = render("[" + user + "," + answer + "]");
  BOOST_TEST_REQUIRE(whole.starts_with(asked));
  const completion read = parse_completion(whole.substr(asked.size()), chat_mode::thinking).value();
  BOOST_TEST(read.reasoning == " r ");
  BOOST_TEST(read.content == "c\n");
  BOOST_TEST_REQUIRE(read.tool_calls.size() == 2U);
  BOOST_TEST(
      (read.tool_calls[0] ==
       completed_call{{"ns", "f"}, R"({"s": "q\"\\\n</｜DSML｜", "n": 2.5, "o": {"x": [null]}})"}));
  BOOST_TEST((read.tool_calls[1] == completed_call{{"", "g"}, "{}"}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cedar::text
