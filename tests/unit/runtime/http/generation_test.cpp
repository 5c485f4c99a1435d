// Goal: choices become one response or a stream, whatever ends them, and nothing stays admitted.
// Method: a service whose events the test makes, and an executor that runs when told.
#include "runtime/http/generation.hpp"

#include <boost/test/unit_test.hpp>
#include <deque>
#include <map>

#include "runtime/http/chat_request.hpp"

using namespace cedar;
using namespace cedar::http;
using nlohmann::json;

namespace {

const text::tokenizer& vocabulary() {
  static const auto loaded =
      text::tokenizer::load(CEDAR_SOURCE_DIR "/configs/models/cedar-tiny/tokenizer.json");
  return *loaded;
}

class scripted_service final : public session::generation_service {
 public:
  session::service_limits limits() const override { return {2048, 2048}; }
  request_id submit(session::generation_request request, session::request_events events) override {
    requests.push_back(std::move(request));
    const request_id ticket{requests.size()};
    open.emplace(ticket.value, std::move(events));
    return ticket;
  }
  void cancel(request_id request) override { cancelled.push_back(request.value); }
  session::service_status status() const override { return {}; }

  void say(std::uint64_t ticket, const std::string& text, bool last) {
    const auto ids = *vocabulary().encode(text, text::control_strings::plain_text);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      session::row_event row;
      row.token = ids[i];
      if (last && i + 1 == ids.size()) row.finish = session::finish_reason::length;
      open.at(ticket).on_row(row);
    }
    if (!last) return;
    session::usage used;
    used.completion_tokens = static_cast<std::uint32_t>(ids.size());
    open.at(ticket).on_finished(used);
    open.erase(ticket);
  }
  /// The model chooses the end of sequence after `tokens` tokens.
  void end(std::uint64_t ticket, std::uint32_t tokens) {
    session::row_event row;
    row.token = 1;
    row.finish = session::finish_reason::stop;
    open.at(ticket).on_row(row);
    session::usage used;
    used.completion_tokens = tokens;
    open.at(ticket).on_finished(used);
    open.erase(ticket);
  }
  void fail_one(std::uint64_t ticket, errc code, const std::string& text) {
    open.at(ticket).on_failed({code, text});
    open.erase(ticket);
  }

  std::vector<session::generation_request> requests;
  std::map<std::uint64_t, session::request_events> open;
  std::vector<std::uint64_t> cancelled;
};

struct fixture {
  scripted_service service;
  mutable metrics counters;
  admission door{{8, 100000}};
  served_model model{"m", "f", 1, {}};
  session::service_limits limits = service.limits();
  std::deque<std::function<void()>> work;
  std::string body;
  std::string events;
  bool last = false;
  std::optional<api_error> refused;
  std::shared_ptr<generation> made;

  void ask(const std::string& text) { begin(parse_completion(text)); }
  void ask_chat(const std::string& text) { begin(parse_chat(text)); }

  template <class Parsed>
  void begin(const Parsed& parsed) {
    BOOST_REQUIRE_MESSAGE(parsed, (parsed ? "" : parsed.error().message));
    auto order = order_maker(model, vocabulary(), limits).make(*parsed);
    BOOST_REQUIRE_MESSAGE(order, (order ? "" : order.error().message));
    auto place = door.enter(static_cast<std::uint32_t>(order->requests.size()), order->tokens_most);
    BOOST_REQUIRE(place);
    generation_listener listener;
    listener.on_body = [this](std::string text_of) { body = std::move(text_of); };
    listener.on_events = [this](std::string more, bool is_last) {
      events += more;
      last = last || is_last;
    };
    listener.on_error = [this](const api_error& what) { refused = what; };
    made = std::make_shared<generation>(
        generation_setting{service, vocabulary(), counters,
                           [this](std::function<void()> task) { work.push_back(std::move(task)); }},
        std::move(*place), std::move(*order), std::move(listener));
    made->start();
  }
  void settle() {
    while (!work.empty()) {
      work.front()();
      work.pop_front();
    }
  }
  /// A value of the metrics; 0 if it is not there.
  double counted(const std::string& name) const {
    const std::string text = counters.text({}, {});
    const std::size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? 0 : std::stod(text.substr(at + name.size() + 2));
  }
  /// The JSON of a stream's events, without [DONE].
  std::vector<json> chunks() const {
    std::vector<json> out;
    for (std::size_t at = 0; at < events.size();) {
      const std::size_t end = events.find("\n\n", at);
      const std::string data = events.substr(at + 6, end - at - 6);
      if (data != "[DONE]") out.push_back(json::parse(data));
      at = end + 2;
    }
    return out;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(generation_suite, fixture)

BOOST_AUTO_TEST_CASE(joins_choices_in_one_response) {
  ask(R"({"model": "m", "prompt": "Once", "n": 2, "seed": 5, "max_tokens": 50})");
  BOOST_REQUIRE_EQUAL(service.requests.size(), 2U);
  BOOST_TEST(service.requests[1].sampling.choice == 1U);
  BOOST_TEST(service.requests[1].sampling.seed == 5U);
  service.say(2, " a fox", true);
  settle();
  BOOST_TEST(body.empty());
  service.say(1, " upon a time", true);
  settle();
  const json out = json::parse(body);
  BOOST_TEST(out.at("object") == "text_completion");
  BOOST_TEST(out.at("seed") == 5);
  BOOST_TEST(out.at("choices").at(0).at("text") == " upon a time");
  BOOST_TEST(out.at("choices").at(1).at("text") == " a fox");
  BOOST_TEST(out.at("choices").at(1).at("finish_reason") == "length");
  const auto prompt = out.at("usage").at("prompt_tokens").get<int>();
  const auto answers = out.at("usage").at("completion_tokens").get<int>();
  BOOST_TEST(out.at("usage").at("total_tokens") == prompt + answers);
  made.reset();
  BOOST_TEST(door.requests() == 0U);
}

BOOST_AUTO_TEST_CASE(streams_what_is_certain) {
  ask(R"({"model": "m", "prompt": "Once", "stream": true, "stop": "time",
          "stream_options": {"include_usage": true}})");
  service.say(1, " upon a time there", false);
  settle();
  BOOST_TEST(last);
  BOOST_TEST((service.cancelled == std::vector<std::uint64_t>{1}));
  BOOST_TEST(events.ends_with("data: [DONE]\n\n"));
  std::string text;
  std::string finish;
  const auto all = chunks();
  for (const json& chunk : all)
    for (const json& choice : chunk.at("choices")) {
      text += choice.at("text").get<std::string>();
      if (choice.at("finish_reason").is_string()) finish = choice.at("finish_reason");
    }
  BOOST_TEST(text == " upon a ");
  BOOST_TEST(finish == "stop");
  BOOST_TEST(all.back().at("usage").at("completion_tokens").get<int>() > 0);
  // The pipeline has not let go of the request yet.
  made.reset();
  BOOST_TEST(door.requests() == 1U);
  service.fail_one(1, errc::cancelled, "cancelled");
  settle();
  BOOST_TEST(door.requests() == 0U);
}

const std::string two_calls =
    "Let me look.\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"look\">\n"
    "<｜DSML｜ parameter name=\"at\" string=\"true\">the \"sea\"</｜DSML｜ parameter>\n"
    "<｜DSML｜ parameter name=\"days\" string=\"false\">[1, 2]</｜DSML｜ parameter>\n"
    "</｜DSML｜ invoke>\n<｜DSML｜ invoke name=\"wait\">\n\n</｜DSML｜ invoke>\n"
    "</｜DSML｜ calls>";

BOOST_AUTO_TEST_CASE(gives_calls_of_tools_apart) {
  ask_chat(R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})");
  service.say(1, two_calls, false);
  service.end(1, 99);
  settle();
  const json choice = json::parse(body).at("choices").at(0);
  BOOST_TEST(choice.at("finish_reason") == "tool_calls");
  BOOST_TEST(choice.at("message").at("content") == "Let me look.");
  const json& calls = choice.at("message").at("tool_calls");
  BOOST_REQUIRE_EQUAL(calls.size(), 2U);
  BOOST_TEST(calls[0].at("type") == "function");
  BOOST_TEST(calls[0].at("function").at("name") == "look");
  BOOST_TEST(json::parse(calls[0].at("function").at("arguments").get<std::string>()) ==
             json::parse(R"({"at": "the \"sea\"", "days": [1, 2]})"));
  BOOST_TEST(calls[1].at("function").at("name") == "wait");
  BOOST_TEST(calls[1].at("function").at("arguments") == "{}");
  BOOST_TEST(calls[0].at("id") != calls[1].at("id"));
}

// Models write what they like.
BOOST_AUTO_TEST_CASE(gives_a_call_without_a_name_as_such) {
  ask_chat(R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})");
  service.say(1, "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"\">\n</｜DSML｜ invoke>\n", false);
  service.end(1, 99);
  settle();
  const json calls = json::parse(body).at("choices").at(0).at("message").at("tool_calls");
  BOOST_REQUIRE_EQUAL(calls.size(), 1U);
  BOOST_TEST(calls[0].at("function").at("name") == "");
  BOOST_TEST(calls[0].at("function").at("arguments") == "{}");
}

BOOST_AUTO_TEST_CASE(streams_calls_of_tools_without_a_tag) {
  ask_chat(R"({"model": "m", "stream": true, "messages": [{"role": "user", "content": "Hi"}]})");
  service.say(1, two_calls, false);
  service.end(1, 99);
  settle();
  std::string content, reason;
  std::map<int, json> calls;
  for (const json& chunk : chunks()) {
    const json& choice = chunk.at("choices").at(0);
    content += choice.at("delta").value("content", "");
    if (choice.at("finish_reason").is_string()) reason = choice.at("finish_reason");
    for (const json& part : choice.at("delta").value("tool_calls", json::array())) {
      const auto [known, first] = calls.try_emplace(part.at("index").get<int>(), part);
      // Only the first part of a call names it.
      BOOST_TEST(part.contains("id") == first);
      BOOST_TEST(part.at("function").contains("name") == first);
      if (first) continue;
      known->second["function"]["arguments"] =
          known->second["function"]["arguments"].get<std::string>() +
          part.at("function").at("arguments").get<std::string>();
    }
  }
  BOOST_TEST(content == "Let me look.");
  BOOST_TEST(reason == "tool_calls");
  BOOST_REQUIRE_EQUAL(calls.size(), 2U);
  BOOST_TEST(json::parse(calls[0].at("function").at("arguments").get<std::string>()) ==
             json::parse(R"({"at": "the \"sea\"", "days": [1, 2]})"));
  BOOST_TEST(calls[1].at("function").at("name") == "wait");
  BOOST_TEST(events.find("DSML") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(tells_a_failure_before_and_in_a_stream) {
  ask(R"({"model": "m", "prompt": "Once", "stream": true, "n": 2})");
  service.fail_one(1, errc::peer_lost, "lost node 'back'");
  settle();
  BOOST_REQUIRE(refused);
  BOOST_TEST(refused->status == 503U);
  BOOST_TEST((service.cancelled == std::vector<std::uint64_t>{2}));
  service.fail_one(2, errc::cancelled, "cancelled");
  settle();

  refused.reset();
  ask(R"({"model": "m", "prompt": "Once", "stream": true})");
  service.say(3, " upon a time", false);
  settle();
  service.fail_one(3, errc::peer_lost, "lost node 'back'");
  settle();
  BOOST_TEST(!refused);
  BOOST_TEST(last);
  BOOST_TEST(chunks().back().at("error").at("message") == "lost node 'back'");
  BOOST_TEST(!events.ends_with("[DONE]\n\n"));
}

BOOST_AUTO_TEST_CASE(gives_up_when_the_time_has_passed) {
  ask(R"({"model": "m", "prompt": "Once", "n": 2})");
  service.say(2, " upon", true);
  settle();
  made->expire(std::chrono::milliseconds(1500));
  BOOST_REQUIRE(refused);
  BOOST_TEST(refused->status == 503U);
  BOOST_TEST(refused->code == "deadline_exceeded");
  BOOST_TEST(refused->message.find("within 1.5 s") != std::string::npos, refused->message);
  BOOST_TEST(body.empty());
  // The pipeline has not let go of the one that ran.
  BOOST_TEST((service.cancelled == std::vector<std::uint64_t>{1}));
  made.reset();
  BOOST_TEST(door.requests() == 2U);
  service.fail_one(1, errc::cancelled, "cancelled");
  settle();
  BOOST_TEST(door.requests() == 0U);
  BOOST_TEST(counted("cedar_generations_total{end=\"expired\"}") == 1);
}

BOOST_AUTO_TEST_CASE(ends_a_stream_when_the_time_has_passed) {
  ask(R"({"model": "m", "prompt": "Once", "stream": true})");
  service.say(1, " upon a time", false);
  settle();
  made->expire(std::chrono::milliseconds(2000));
  BOOST_TEST(!refused);
  BOOST_TEST(last);
  BOOST_TEST(chunks().back().at("error").at("code") == "deadline_exceeded");
  const std::string told = events;
  service.say(1, " there was", false);
  service.fail_one(1, errc::cancelled, "cancelled");
  settle();
  BOOST_TEST(events == told);
}

BOOST_AUTO_TEST_CASE(has_time_no_more_when_it_is_complete) {
  ask(R"({"model": "m", "prompt": "Once"})");
  service.say(1, " upon", true);
  settle();
  made->expire(std::chrono::milliseconds(1));
  BOOST_TEST(!refused);
  BOOST_TEST(service.cancelled.empty());
  BOOST_TEST(counted("cedar_generations_total{end=\"answered\"}") == 1);
  BOOST_TEST(counted("cedar_generations_total{end=\"expired\"}") == 0);
}

BOOST_AUTO_TEST_CASE(gives_up_when_the_client_goes) {
  ask(R"({"model": "m", "prompt": "Once", "n": 2})");
  service.say(1, " upon", true);
  settle();
  made->abandon();
  BOOST_TEST((service.cancelled == std::vector<std::uint64_t>{2}));
  service.say(2, " late", true);
  settle();
  BOOST_TEST(body.empty());
  made.reset();
  BOOST_TEST(door.requests() == 0U);
}

BOOST_AUTO_TEST_CASE(refuses_at_the_door) {
  ask(R"({"model": "m", "prompt": "Once", "n": 8})");
  const auto more = door.enter(1, 1);
  BOOST_REQUIRE(!more);
  BOOST_TEST(more.error().status == 429U);
  const auto never = door.enter(9, 1);
  BOOST_REQUIRE(!never);
  BOOST_TEST(never.error().status == 400U);
  for (std::uint64_t ticket = 1; ticket <= 8; ++ticket) service.say(ticket, "x", true);
  settle();
}

BOOST_AUTO_TEST_CASE(refuses_prompts_that_do_not_fit) {
  const auto order_of = [&](const std::string& text) {
    const auto parsed = parse_completion(text);
    BOOST_REQUIRE(parsed);
    return order_maker(model, vocabulary(), limits).make(*parsed);
  };
  BOOST_TEST(order_of(R"({"model": "other", "prompt": "x"})").error().status == 404U);
  limits.context_max = 4;
  const auto longer = order_of(R"({"model": "m", "prompt": [1, 2, 3, 4, 5]})");
  BOOST_TEST(longer.error().code == "context_length_exceeded");
  BOOST_TEST(order_of(R"({"model": "m", "prompt": [4000]})").error().param == "prompt");
  BOOST_TEST(order_of(R"({"model": "m", "prompt": [1, 2, 3, 4], "max_tokens": 2})").error().param ==
             "max_tokens");
  const auto fits = order_of(R"({"model": "m", "prompt": [1, 2, 3, 4]})");
  BOOST_REQUIRE(fits);
  BOOST_TEST(fits->requests.at(0).new_tokens_max == 1U);
  BOOST_TEST((fits->requests.at(0).mode == session::prefill_mode::exact));
  const auto bounded = order_of(R"({"model": "m", "prompt": [1], "mode": "bounded"})");
  BOOST_REQUIRE(bounded);
  BOOST_TEST((bounded->requests.at(0).mode == session::prefill_mode::bounded));
}

BOOST_AUTO_TEST_SUITE_END()
