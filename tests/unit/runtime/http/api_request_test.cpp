// Goal: a body becomes what it asks for, or an error that names every mistake. Method: bodies by
// hand.
#include "runtime/http/api_request.hpp"

#include <boost/test/unit_test.hpp>

using namespace cedar;
using namespace cedar::http;

namespace {

completion_ask accepted(const std::string& body) {
  auto read = parse_completion(body);
  BOOST_REQUIRE_MESSAGE(read, (read ? "" : read.error().message));
  return std::move(*read);
}

api_error refused(const std::string& body) {
  const auto read = parse_completion(body);
  BOOST_REQUIRE(!read);
  BOOST_TEST(read.error().status == 400U);
  BOOST_TEST(read.error().type == "invalid_request_error");
  return read.error();
}

bool says(const api_error& what, const std::string& text) {
  return what.message.find(text) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(api_request)

BOOST_AUTO_TEST_CASE(has_the_defaults_of_the_interface) {
  const completion_ask ask = accepted(R"({"model": "m", "prompt": "hello"})");
  BOOST_TEST(std::get<std::string>(ask.prompts.at(0)) == "hello");
  BOOST_TEST(ask.n == 1U);
  BOOST_TEST(!ask.new_tokens_max.has_value());
  BOOST_TEST(ask.new_tokens_default == 16U);
  BOOST_TEST(!ask.prompt_logprobs.has_value());
  BOOST_TEST(ask.sampling.temperature == 1.0F);
  BOOST_TEST(ask.sampling.top_p == 1.0F);
  BOOST_TEST(!ask.seed.has_value());
  BOOST_TEST(!ask.stream);
  BOOST_TEST(!ask.logprobs);
  BOOST_TEST(!ask.mode.has_value());
  BOOST_TEST(!ask.time_limit.has_value());
}

BOOST_AUTO_TEST_CASE(takes_every_member) {
  const completion_ask ask = accepted(R"({
    "model": "m", "prompt": [[5, 6], "text"], "n": 3, "max_tokens": 7, "ignore_eos": true,
    "stream": true, "stream_options": {"include_usage": true,
    "include_obfuscation": false}, "stop": ["a", "b"], "logprobs": 2,
    "temperature": 0, "top_p": 0.5, "min_p": 0.1, "top_k": 40, "presence_penalty": -1,
    "frequency_penalty": 1, "repetition_penalty": 1.1, "logit_bias": {"17": -2.5}, "seed": 9,
    "timeout": 2.5, "min_tokens": 4, "mode": "bounded", "best_of": 3, "user": "somebody", "echo": null})");
  BOOST_TEST((std::get<std::vector<token_id>>(ask.prompts.at(0)) == std::vector<token_id>{5, 6}));
  BOOST_TEST(std::get<std::string>(ask.prompts.at(1)) == "text");
  BOOST_TEST(ask.n == 3U);
  BOOST_TEST(ask.new_tokens_max.value() == 7U);
  BOOST_TEST(ask.ignore_eos);
  BOOST_TEST(ask.include_usage);
  BOOST_TEST((ask.stops == std::vector<std::string>{"a", "b"}));
  BOOST_TEST(ask.logprobs);
  BOOST_TEST(ask.top_logprobs == 2U);
  BOOST_TEST(ask.sampling.temperature == 0.0F);
  BOOST_TEST(ask.sampling.top_k == 40U);
  BOOST_TEST(ask.sampling.tokens_min == 4U);
  BOOST_TEST(
      accepted(R"({"model": "m", "prompt": "p", "prompt_logprobs": 3})").prompt_logprobs.value() ==
      3U);
  BOOST_TEST((ask.sampling.bias == std::vector<flow::token_bias>{{17, -2.5F}}));
  BOOST_TEST(ask.seed.value() == 9U);
  BOOST_TEST(ask.time_limit.value().count() == 2500);
  BOOST_TEST((ask.mode.value() == session::prefill_mode::bounded));
}

BOOST_AUTO_TEST_CASE(names_all_mistakes_at_once) {
  const api_error what = refused(
      R"({"model": "m", "prompt": "p", "temperature": "hot", "n": 0, "stop": [""], "nonsense": 1})");
  BOOST_TEST(what.param == "n");
  for (const char* name : {"'temperature'", "'n'", "'stop[0]'", "'nonsense'"})
    BOOST_TEST(says(what, name), what.message);
}

BOOST_AUTO_TEST_CASE(names_the_wrong_member) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"prompt": "p"})", "model"},
      {R"({"model": "m"})", "prompt"},
      {R"({"model": "m", "prompt": []})", "prompt"},
      {R"({"model": "m", "prompt": [1, -2]})", "prompt"},
      {R"({"model": "m", "prompt": "p", "max_tokens": 0})", "max_tokens"},
      {R"({"model": "m", "prompt": "p", "max_tokens": 1.5})", "max_tokens"},
      {R"({"model": "m", "prompt": "p", "max_tokens": 4, "min_tokens": 5})", "min_tokens"},
      {R"({"model": "m", "prompt": "p", "min_tokens": -1})", "min_tokens"},
      {R"({"model": "m", "prompt": "p", "prompt_logprobs": 21})", "prompt_logprobs"},
      {R"({"model": "m", "prompt": "p", "prompt_logprobs": 0, "stream": true})", "prompt_logprobs"},
      {R"({"model": "m", "prompt": "p", "n": 17})", "n"},
      {R"({"model": "m", "prompt": "p", "stop": ""})", "stop"},
      {R"({"model": "m", "prompt": "p", "stop": ["a", ""]})", "stop"},
      {R"({"model": "m", "prompt": "p", "ignore_eos": 1})", "ignore_eos"},
      {R"({"model": "m", "prompt": "p", "frequency_penalty": 3})", "frequency_penalty"},
      {R"({"model": "m", "prompt": "p", "presence_penalty": "x"})", "presence_penalty"},
      {R"({"model": "m", "prompt": "p", "repetition_penalty": 0})", "repetition_penalty"},
      {R"({"model": "m", "prompt": "p", "logit_bias": {"1": 101}})", "logit_bias"},
      {R"({"model": "m", "prompt": "p", "temperature": 2.1})", "temperature"},
      {R"({"model": "m", "prompt": "p", "top_p": 0})", "top_p"},
      {R"({"model": "m", "prompt": "p", "seed": -1})", "seed"},
      {R"({"model": "m", "prompt": "p", "logit_bias": {"x": 1}})", "logit_bias"},
      {R"({"model": "m", "prompt": "p", "logprobs": 21})", "logprobs"},
      {R"({"model": "m", "prompt": "p", "echo": true})", "echo"},
      {R"({"model": "m", "prompt": "p", "timeout": 0})", "timeout"},
      {R"({"model": "m", "prompt": "p", "timeout": "1"})", "timeout"},
      {R"({"model": "m", "prompt": "p", "mode": "fast"})", "mode"},
      {R"({"model": "m", "prompt": "p", "mode": 1})", "mode"},
      {R"({"model": "m", "prompt": "p", "best_of": 2})", "best_of"},
      {R"({"model": "m", "prompt": "p", "stream": true,
           "stream_options": {"include_obfuscation": true}})",
       "stream_options.include_obfuscation"},
      {R"({"model": "m", "prompt": "p", "stream": 1})", "stream"},
      {R"({"model": "m", "prompt": "p", "stream_options": {}})", "stream_options"},
  };
  for (const auto& [body, param] : cases) BOOST_TEST(refused(body).param == param, body);
}

BOOST_AUTO_TEST_CASE(refuses_what_is_no_object) {
  BOOST_TEST(says(refused("{\"model\": "), "not JSON, at byte"));
  BOOST_TEST(says(refused("[1]"), "must be a JSON object"));
  BOOST_TEST(says(refused("\xFF"), "not JSON"));
  BOOST_TEST(
      says(refused(std::string(R"({"model": "m", "prompt": "p"})") + '\0' + "{"), "byte 30"));
}

BOOST_AUTO_TEST_CASE(bounds_what_the_size_of_a_body_does_not) {
  BOOST_TEST(says(refused(std::string(100, '[') + std::string(100, ']')), "nested"));
  std::string wide = "{";
  for (std::size_t i = 0; i <= object_members_max; ++i)
    wide += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  BOOST_TEST(says(refused(wide + "}"), "members"));
}

BOOST_AUTO_TEST_CASE(makes_error_bodies_as_openai_does) {
  const auto body = nlohmann::json::parse(bad_request("what", "param").body());
  const auto& inner = body.at("error");
  BOOST_TEST(inner.at("message") == "what");
  BOOST_TEST(inner.at("type") == "invalid_request_error");
  BOOST_TEST(inner.at("param") == "param");
  BOOST_TEST(inner.at("code").is_null());
  BOOST_TEST(overloaded("x").retry_after_s > 0U);
  BOOST_TEST(api_error_of({errc::peer_lost, "lost node 'back'"}).status == 503U);
  BOOST_TEST(api_error_of({errc::capacity, "full"}).status == 429U);
}

BOOST_AUTO_TEST_SUITE_END()
