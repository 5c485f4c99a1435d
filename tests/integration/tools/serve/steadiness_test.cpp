// Goal: a topology that has answered for long answers as on its first day, and frees what takes too
// long. Method: requests one after the other over two processes; a short time for a long answer.
#include <boost/test/unit_test.hpp>

#include "tests/integration/tools/serve/server.hpp"

using namespace cedar::test;
using nlohmann::json;

BOOST_AUTO_TEST_SUITE(serve_steadiness)

BOOST_AUTO_TEST_CASE(answers_a_hundred_requests_alike) {
  const server one;
  const char* const prompts[] = {"Once upon a time", "The fox", "A"};
  std::vector<std::string> first;
  for (const char* prompt : prompts) first.push_back(one.completion(greedy(prompt, 12)));
  BOOST_TEST(first[0] != first[1]);
  for (std::size_t i = 0; i < 100; ++i) {
    json ask = greedy(prompts[i % 3], 12);
    ask["stream"] = i % 2 == 1;
    BOOST_REQUIRE_EQUAL(one.completion(ask), first[i % 3]);
  }
  BOOST_TEST(one.wait_metric("cedar_answers_open", 0));
  BOOST_TEST(one.wait_metric("cedar_kv_positions", 0));
}

BOOST_AUTO_TEST_CASE(gives_up_what_takes_too_long) {
  const server one({"--request-seconds", "60"});
  json ask = greedy("Once upon a time", 1900);
  ask["ignore_eos"] = true;
  ask["timeout"] = 0.02;
  const http_reply refused = one.post("/v1/completions", ask);
  BOOST_TEST(refused.status == 503);
  BOOST_TEST(json::parse(refused.body).at("error").at("code") == "deadline_exceeded");
  BOOST_TEST(one.wait_metric("cedar_answers_open", 0));
  BOOST_TEST(one.wait_metric("cedar_kv_positions", 0));
  BOOST_TEST(!one.completion(greedy("The fox", 4)).empty());
}

BOOST_AUTO_TEST_SUITE_END()
