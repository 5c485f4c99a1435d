// Goal: a request whose time has passed is answered at once, whatever the pipeline does, and gives
// back what it held. Method: a service that says little or nothing; the engine of this process,
// held while requests run and wait; a burst of many times its capacity.
#include <boost/test/unit_test.hpp>
#include <future>
#include <thread>

#include "tests/integration/runtime/http/world.hpp"
#include "tests/integration/support/program.hpp"

using namespace cedar;
using namespace cedar::test;
using nlohmann::json;

namespace {

/// Says one token, if told to, and nothing more until it is cancelled.
class silent_service final : public session::generation_service {
 public:
  explicit silent_service(bool says_one) : says_one_(says_one) {}

  session::service_limits limits() const override { return {2048, 2048}; }
  request_id submit(session::generation_request, session::request_events events) override {
    session::row_event row;
    row.token = vocabulary().encode(" fox", text::control_strings::plain_text)->front();
    if (says_one_) events.on_row(row);
    const std::scoped_lock lock(mutex_);
    open_.push_back(std::move(events));
    return request_id{open_.size() - 1};
  }
  void cancel(request_id request) override {
    const std::scoped_lock lock(mutex_);
    const session::request_events ended = std::exchange(open_.at(request.value), {});
    ended.on_failed({errc::cancelled, "cancelled"});
  }
  session::service_status status() const override { return {}; }

 private:
  bool says_one_;
  std::mutex mutex_;
  std::deque<session::request_events> open_;
};

struct silence {
  silence(std::chrono::milliseconds limit, bool says_one) : service(says_one) {
    http::server_options options = server_options_of_tests();
    options.request_limit = limit;
    auto opened = http::server::open(service, vocabulary(), options);
    BOOST_REQUIRE(opened);
    server = std::move(*opened);
    port = port_of(*server);
  }

  silent_service service;
  std::unique_ptr<http::server> server;
  std::uint16_t port = 0;
};

json with_timeout(json ask, double seconds) {
  ask["timeout"] = seconds;
  return ask;
}

bool is_deadline(const json& body) {
  return body.at("error").at("code") == "deadline_exceeded";
}

constexpr const char* expired = R"(cedar_generations_total{end="expired"})";

}  // namespace

BOOST_AUTO_TEST_SUITE(http_deadlines)

BOOST_AUTO_TEST_CASE(answers_503_when_nothing_comes) {
  for (const bool stream : {false, true}) {
    silence quiet(100ms, false);
    http_client client(quiet.port);
    const auto begin = std::chrono::steady_clock::now();
    client.send("POST", "/v1/completions", ask_for("Once", 8, stream).dump());
    const http_reply reply = client.receive();
    BOOST_TEST((std::chrono::steady_clock::now() - begin >= 100ms));
    BOOST_TEST(reply.status == 503);
    BOOST_TEST(!reply.headers.at("retry-after").empty());
    BOOST_TEST(is_deadline(json::parse(reply.body)));
    BOOST_TEST(contains(reply.body, "within 0.1 s"), reply.body);
    client.send("GET", "/health");
    BOOST_TEST(client.receive().status == 200);
    BOOST_TEST(metric(quiet.port, expired) == 1);
    BOOST_TEST(eventually([&] { return metric(quiet.port, "cedar_answers_open") == 0; }));
  }
}

BOOST_AUTO_TEST_CASE(ends_a_stream_with_an_error_event) {
  silence quiet(200ms, true);
  const http_reply reply =
      exchange(quiet.port, "POST", "/v1/completions", ask_for("Once", 8, true).dump());
  BOOST_TEST(reply.status == 200);
  const auto events = events_of(reply.body);
  BOOST_REQUIRE(events.size() == 2U);
  BOOST_TEST(json::parse(events[0]).contains("choices"));
  BOOST_TEST(is_deadline(json::parse(events[1])));
  BOOST_TEST(eventually([&] { return metric(quiet.port, "cedar_answers_open") == 0; }));
}

BOOST_AUTO_TEST_CASE(takes_the_shorter_of_two_limits) {
  const struct {
    std::chrono::milliseconds server;
    double request;
    const char* used;
  } cases[] = {{100ms, 1000, "within 0.1 s"}, {60s, 0.05, "within 0.05 s"}, {0ms, 0.06, "0.06 s"}};
  for (const auto& each : cases) {
    silence quiet(each.server, false);
    const http_reply reply = exchange(quiet.port, "POST", "/v1/completions",
                                      with_timeout(ask_for("Once", 8), each.request).dump());
    BOOST_TEST(reply.status == 503);
    BOOST_TEST(contains(reply.body, each.used), reply.body);
  }
}

BOOST_AUTO_TEST_CASE(counts_each_answer_of_a_connection_anew) {
  http::server_options options = server_options_of_tests();
  options.request_limit = 0ms;
  world one(options);
  http_client client(one.port);
  const auto begin = std::chrono::steady_clock::now();
  client.send("POST", "/v1/completions", with_timeout(ask_for("Once", 4), 4).dump());
  BOOST_TEST(client.receive().status == 200);
  // The next one has no limit, and is under way when the one before would have had no time left.
  one.service->hold_at({3, 2});
  client.send("POST", "/v1/completions", ask_for("Once", 4).dump());
  one.service->wait_held();
  std::this_thread::sleep_until(begin + 4500ms);
  one.service->release();
  BOOST_TEST(client.receive().status == 200);
  BOOST_TEST(metric(one.port, expired) == 0);
}

BOOST_AUTO_TEST_CASE(frees_what_runs_and_what_waits) {
  world one;
  one.service->hold_at({2, 3});
  // Long enough to come to its third token on any machine.
  const auto running = one.begin(with_timeout(ask_for("Once upon a time", 400, true), 4));
  one.service->wait_held();
  const auto waiting = one.begin(with_timeout(ask_for("Once upon a time", 400, true), 0.1));
  // Both are told while the engine does nothing at all.
  BOOST_TEST(waiting->receive().status == 503);
  BOOST_TEST(is_deadline(json::parse(events_of(running->receive().body).back())));
  one.service->wait_cancelled(2);
  one.service->release();
  one.check_whole();
  BOOST_TEST(one.service->tokens(2) == 3U);
  BOOST_TEST(one.service->tokens(3) == 0U);
}

BOOST_AUTO_TEST_CASE(ends_every_request_of_a_burst) {
  http::server_options options = server_options_of_tests();
  options.request_limit = 3s;  // what answers after the burst has it, too
  options.admitted.requests_max = 8;
  world one(options);
  std::vector<std::future<std::pair<int, std::chrono::steady_clock::duration>>> replies;
  for (int i = 0; i < 80; ++i)
    replies.push_back(std::async(std::launch::async, [&one] {
      const auto begin = std::chrono::steady_clock::now();
      const int status = one.post(ask_for("Once upon a time", 1000)).status;
      return std::pair(status, std::chrono::steady_clock::now() - begin);
    }));
  std::map<int, int> counts;
  for (auto& reply : replies) {
    const auto [status, took] = reply.get();
    ++counts[status];
    BOOST_TEST((took < 3s + patience / 4));  // a loaded machine takes its time
  }
  BOOST_TEST(counts[200] + counts[429] + counts[503] == 80);
  BOOST_TEST(counts[429] > 0);
  one.check_whole();
}

BOOST_AUTO_TEST_SUITE_END()
