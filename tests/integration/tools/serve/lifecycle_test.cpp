// Goal: who goes away, whatever ends, and whoever comes too many leaves nothing behind and is told
// why. Method: a server of two processes, clients that leave, signals.
#include <signal.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <list>
#include <system_error>

#include "tests/integration/tools/serve/server.hpp"

using namespace cedar::test;
using nlohmann::json;
namespace data = boost::unit_test::data;

namespace {

/// A stream that goes on for long.
json endless(bool stream = true) {
  json out = greedy("Once upon a time", 1900);
  out["ignore_eos"] = true;
  out["stream"] = stream;
  return out;
}

void check_ended(server& one) {
  BOOST_TEST(one.process.wait_end());
  BOOST_TEST(one.process.code() == 0, one.process.errors());
  BOOST_TEST(one.process.processes().empty());
}

void stop(server& one) {
  one.process.signal(SIGTERM);
  check_ended(one);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(serve_lifecycle)

BOOST_AUTO_TEST_CASE(frees_what_a_client_that_goes_away_held) {
  server one;
  {
    http_client streaming(one.port);
    streaming.send("POST", "/v1/completions", endless().dump());
    streaming.wait_for("data: ");
    http_client waiting(one.port);
    waiting.send("POST", "/v1/completions", endless(false).dump());
    BOOST_TEST(one.wait_metric("cedar_scheduler_requests_running", 2));
  }
  BOOST_TEST(one.wait_metric("cedar_scheduler_requests_running", 0));
  BOOST_TEST(one.metric("cedar_kv_positions") == 0);
  BOOST_TEST(one.wait_metric("cedar_answers_open", 0));
  BOOST_TEST(one.metric(R"(cedar_generations_total{end="abandoned"})") == 2);
  // The pipeline serves on.
  BOOST_TEST(!one.completion(greedy("A fox", 8)).empty());
  stop(one);
}

BOOST_AUTO_TEST_CASE(finishes_what_has_begun_when_told_to_stop) {
  server one;
  std::list<http_client> clients;
  json ask = endless();
  ask["max_tokens"] = 150;
  for (int i = 0; i < 8; ++i) {
    http_client& client = clients.emplace_back(one.port);
    client.send("POST", "/v1/completions", ask.dump());
    client.wait_for("data: ");
  }
  http_client idle(one.port);
  idle.send("GET", "/health");
  BOOST_TEST(idle.receive().status == 200);
  one.process.signal(SIGTERM);
  const std::string first = streamed_text(clients.front().receive().body);
  BOOST_TEST(first.size() > 150U);
  clients.pop_front();
  for (http_client& client : clients) BOOST_TEST(streamed_text(client.receive().body) == first);
  BOOST_TEST(one.process.wait_end());
  BOOST_TEST(one.process.code() == 0, one.process.errors());
  BOOST_TEST(one.process.processes().empty());
  BOOST_TEST(idle.closed());
  BOOST_CHECK_THROW(http_client{one.port}, std::system_error);
}

/// Signals again and again until it has ended. The first lets the answer go on, the second ends it,
/// more change nothing.
void insist(server& one, int number) {
  http_client client(one.port);
  client.send("POST", "/v1/completions", endless().dump());
  client.wait_for("data: ");
  const auto until = std::chrono::steady_clock::now() + patience;
  do {
    one.process.signal(number);
  } while (!one.process.wait_end(1ms) && std::chrono::steady_clock::now() < until);
  check_ended(one);
  BOOST_TEST(contains(client.receive().body, "interrupted"));
}

BOOST_DATA_TEST_CASE(ends_by_itself_however_often_it_is_told_to,
                     data::make({SIGINT, SIGTERM, SIGHUP}), number) {
  server two_processes;
  insist(two_processes, number);
  server one_process({}, std::nullopt);
  insist(one_process, number);
}

BOOST_AUTO_TEST_CASE(refuses_more_than_its_queue_holds) {
  server one({"--queue-requests", "2"});
  http_client first(one.port);
  first.send("POST", "/v1/completions", endless().dump());
  first.wait_for("data: ");
  json two = greedy("A fox", 4);
  two["n"] = 2;
  const http_reply refused = one.post("/v1/completions", two);
  BOOST_TEST(refused.status == 429);
  BOOST_TEST(!refused.headers.at("retry-after").empty());
  BOOST_TEST(json::parse(refused.body).at("error").at("code") == "rate_limit_exceeded");
  BOOST_TEST(one.post("/v1/completions", greedy("A fox", 4)).status == 200);
}

BOOST_AUTO_TEST_SUITE_END()
