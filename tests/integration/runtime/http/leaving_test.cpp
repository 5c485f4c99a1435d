// Goal: a client that leaves, at whatever point of its request, leaves nothing behind. Method: the
// engine of this process, held where the client leaves until the server has noticed.
#include <boost/test/unit_test.hpp>
#include <future>

#include "tests/integration/runtime/http/world.hpp"
#include "tests/integration/support/program.hpp"

using namespace cedar::test;
using nlohmann::json;

// The first request of a world is its own: those of the tests count from 2.
BOOST_AUTO_TEST_SUITE(http_leaving)

BOOST_AUTO_TEST_CASE(while_it_sends) {
  world one;
  {
    http_client client(one.port);
    client.send_raw(
        "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 500\r\n\r\n{\"mod");
  }
  one.check_whole();
  BOOST_TEST(one.service->submitted() == 2U);
}

BOOST_AUTO_TEST_CASE(while_it_waits_in_the_queue) {
  world one;
  one.service->hold_at({2, 2});
  const auto running = one.begin(ask_for("The fox", 4));
  one.service->wait_held();
  auto waiting = one.begin(ask_for("Once upon a time", 4));
  one.service->wait_submitted(3);
  waiting.reset();
  one.service->wait_cancelled(1);
  one.service->release();
  BOOST_TEST(running->receive().status == 200);
  BOOST_TEST(one.service->tokens(3) == 0U);
  one.check_whole();
}

BOOST_AUTO_TEST_CASE(while_its_prompt_is_computed) {
  world one(server_options_of_tests(), 2);
  one.service->hold_at({2, 2});
  const auto other = one.begin(ask_for("The fox", 12));
  one.service->wait_held();
  std::string words;
  for (int i = 0; i < 200; ++i) words += "Once upon a time ";
  auto leaving = one.begin(ask_for(words, 4));
  one.service->wait_submitted(3);
  one.service->release(token_place{2, 5});
  one.service->wait_held();  // some chunks of the long prompt have gone along
  leaving.reset();
  one.service->wait_cancelled(1);
  one.service->release(token_place{2, 10});
  one.service->wait_held();
  BOOST_TEST(one.service->status().load.running == 1U);  // most of its prompt is not computed
  one.service->release();
  BOOST_TEST(other->receive().status == 200);
  BOOST_TEST(one.service->tokens(3) == 0U);
  one.check_whole();
}

BOOST_AUTO_TEST_CASE(before_its_first_token_is_sent) {
  for (const bool stream : {false, true}) {
    world one;
    one.service->hold_at({2, 1});
    auto leaving = one.begin(ask_for("Once upon a time", 400, stream));
    one.service->wait_held();
    leaving.reset();
    one.service->wait_cancelled(1);
    one.service->release();
    one.check_whole();
    BOOST_TEST(one.service->tokens(2) == 1U);
  }
}

BOOST_AUTO_TEST_CASE(in_its_answer) {
  for (const bool stream : {false, true}) {
    world one;
    one.service->hold_at({2, 20});
    auto leaving = one.begin(ask_for("Once upon a time", 400, stream));
    one.service->wait_held();
    if (stream) leaving->wait_for("data: ");
    leaving.reset();
    one.service->wait_cancelled(1);
    one.service->release();
    one.check_whole();
    BOOST_TEST(one.service->tokens(2) == 20U);
    BOOST_TEST(metric(one.port, R"(cedar_generations_total{end="abandoned"})") == 1);
  }
}

BOOST_AUTO_TEST_CASE(between_its_choices) {
  world one;
  // Of three choices the first has ended, the second runs, the third waits.
  one.service->hold_at({3, 2});
  json ask = ask_for("Once upon a time", 6, true);
  ask["n"] = 3;
  auto leaving = one.begin(ask);
  one.service->wait_held();
  leaving->wait_for("\"finish_reason\":\"length\"");
  leaving.reset();
  one.service->wait_cancelled(2);
  one.service->release();
  one.check_whole();
  BOOST_TEST(one.service->tokens(2) == 6U);
  BOOST_TEST(one.service->tokens(3) == 2U);
  BOOST_TEST(one.service->tokens(4) == 0U);
}

BOOST_AUTO_TEST_CASE(when_its_stop_string_has_come) {
  world one;
  json ask = ask_for("Once upon a time", 400);
  const std::string text =
      json::parse(one.post(ask_for("Once upon a time", 40)).body).at("choices").at(0).at("text");
  ask["stop"] = text.substr(20, 8);
  const std::string cut =
      json::parse(one.post(ask).body).at("choices").at(0).at("text").get<std::string>();
  BOOST_TEST(cut == text.substr(0, text.find(ask["stop"].get<std::string>())));
  one.service->wait_cancelled(1);
  one.check_whole();
  BOOST_TEST(one.service->tokens(3) < 400U);
}

BOOST_AUTO_TEST_CASE(while_the_server_drains) {
  world one;
  one.service->hold_at({2, 3});
  auto leaving = one.begin(ask_for("Once upon a time", 400, true));
  auto waiting = one.begin(ask_for("Once upon a time", 400));
  one.service->wait_held();
  one.service->wait_submitted(3);
  auto drained = std::async(std::launch::async, [&] { return one.server->drain(patience); });
  // Both are admitted: draining waits for them, and they leave.
  BOOST_TEST((drained.wait_for(50ms) == std::future_status::timeout));
  leaving.reset();
  waiting.reset();
  one.service->wait_cancelled(2);
  one.service->release();
  BOOST_TEST(drained.get());
  one.server.reset();  // returns when the engine has let go of everything
  BOOST_TEST(one.service->tokens(2) == 3U);
  BOOST_TEST(
      eventually([&] { return one.service->status().load == cedar::session::scheduler_load{}; }));
}

BOOST_AUTO_TEST_CASE(because_the_server_ends) {
  world one;
  one.service->hold_at({2, 3});
  const auto dropped = one.begin(ask_for("Once upon a time", 400, true));
  one.service->wait_held();
  auto ended = std::async(std::launch::async, [&] { one.server.reset(); });
  one.service->wait_cancelled(1);
  // The engine may still call what the request has left with it.
  BOOST_TEST((ended.wait_for(50ms) == std::future_status::timeout));
  one.service->release();
  ended.get();
  BOOST_TEST(one.service->tokens(2) == 3U);
}

BOOST_AUTO_TEST_SUITE_END()
