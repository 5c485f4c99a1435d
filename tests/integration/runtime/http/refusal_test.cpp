// Goal: a request that is refused, at whatever step of its admission, leaves nothing admitted and
// nothing in the pipeline. Method: bodies for every refusal, beside a request that is held.
#include <boost/test/unit_test.hpp>

#include "tests/integration/runtime/http/world.hpp"
#include "tests/integration/support/program.hpp"

using namespace cedar;
using namespace cedar::test;
using nlohmann::json;

BOOST_AUTO_TEST_SUITE(http_refusals)

BOOST_AUTO_TEST_CASE(leave_nothing_at_the_door) {
  http::server_options options = server_options_of_tests();
  options.admitted = {.requests_max = 4, .tokens_max = 2000};
  options.body_bytes_max = 100'000;
  world one(options);
  one.service->hold_at({2, 1});
  const auto running = one.begin(ask_for("Once upon a time", 40));
  one.service->wait_held();
  const double tokens = metric(one.port, "cedar_tokens_open");

  json other = ask_for("x", 4), wrong = ask_for("x", 4), many = ask_for("x", 4);
  other["model"] = "another";
  wrong["temperature"] = "hot";
  many["n"] = 4;
  json never = ask_for("x", 4);
  never["n"] = 5;
  const json too_long = ask_for("x", 4);
  json ids = too_long;
  ids["prompt"] = std::vector<int>(5000, 5);
  json outside = too_long;
  outside["prompt"] = {5000000};
  const std::pair<int, std::string> cases[] = {
      {400, "{nonsense"},
      {400, wrong.dump()},
      {400, ids.dump()},
      {400, outside.dump()},
      {400, never.dump()},
      {404, other.dump()},
      {413, std::string(100'001, ' ')},
      {429, many.dump()},
      {429, ask_for("x", 1990).dump()},
  };
  for (const auto& [status, body] : cases) {
    BOOST_TEST_CONTEXT(body.substr(0, 200)) {
      BOOST_TEST(exchange(one.port, "POST", "/v1/completions", body).status == status);
      BOOST_TEST(one.service->submitted() == 2U);
      BOOST_TEST(metric(one.port, "cedar_answers_open") == 1);
      BOOST_TEST(metric(one.port, "cedar_tokens_open") == tokens);
    }
  }
  one.service->release();
  BOOST_TEST(running->receive().status == 200);
  one.check_whole();
}

BOOST_AUTO_TEST_CASE(tell_how_much_kv_there_is_at_all) {
  world one(server_options_of_tests(), 1, 256);
  BOOST_TEST(metric(one.port, "cedar_kv_positions_max") == 256);
  const json ask = ask_for("Once upon a time", 400);
  for (int again = 0; again < 2; ++again) {
    const http_reply reply = one.post(ask);
    BOOST_TEST(reply.status == 400);
    BOOST_TEST(contains(reply.body, "the KV of this server holds 256"), reply.body);
  }
  BOOST_TEST(one.service->submitted() == 1U);
  json fits = ask;
  fits["max_tokens"] = 240;
  const http_reply reply = one.post(fits);
  BOOST_TEST(reply.status == 200);
  BOOST_TEST(json::parse(reply.body).at("usage").at("completion_tokens") == 240);
  one.check_whole();
}

BOOST_AUTO_TEST_CASE(leave_nothing_in_the_scheduler) {
  world one;
  // Its queue holds 8: some of the choices are refused, those that were not are given up.
  json ask = ask_for("Once upon a time", 400);
  ask["n"] = 16;
  const http_reply reply = one.post(ask);
  BOOST_TEST(reply.status == 429);
  BOOST_TEST(!reply.headers.at("retry-after").empty());
  BOOST_TEST(metric(one.port, R"(cedar_generations_total{end="failed"})") == 1);
  one.check_whole();
}

BOOST_AUTO_TEST_CASE(leave_nothing_while_draining) {
  world one;
  http_client client(one.port);
  client.send("GET", "/health");
  BOOST_TEST(client.receive().status == 200);
  BOOST_TEST(one.server->drain(patience));
  client.send("POST", "/v1/completions", ask_for("Once", 4).dump());
  const http_reply reply = client.receive();
  BOOST_TEST(reply.status == 503);
  BOOST_TEST(contains(reply.body, "stopping"), reply.body);
  BOOST_TEST(one.service->submitted() == 1U);
  BOOST_TEST(eventually([&] { return one.service->status().load == session::scheduler_load{}; }));
}

BOOST_AUTO_TEST_SUITE_END()
