#include "tests/integration/tools/serve/fault_watch.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <thread>

namespace cedar::test {

using nlohmann::json;

namespace {

using clock = std::chrono::steady_clock;

/// Rows of the long prompt: hundreds of steps of `small_chunks`.
constexpr std::size_t prompt_rows = 1900;
/// Tokens of the stream that come while chunks of the prompt are computed; more than steps are in
/// flight, so that some chunks have passed the whole pipeline.
constexpr double tokens_meanwhile = 6;

std::string body_of(http_client& client, const std::string& path) {
  client.send("GET", path);
  return client.receive().body;
}

void wait_until(const std::function<bool()>& condition, const char* what) {
  const auto until = clock::now() + patience;
  while (!condition()) {
    BOOST_REQUIRE_MESSAGE((clock::now() < until), what);
    std::this_thread::sleep_for(1ms);
  }
}

double sum_of(http_client& client, const std::vector<std::string>& counters) {
  const std::string text = body_of(client, "/metrics");
  double out = 0;
  for (const std::string& name : counters) out += value_of(text, name);
  return out;
}

fault_watch::sighting look(http_client& client, const std::vector<std::string>& counters,
                           double before, const std::atomic<bool>& given_up) {
  fault_watch::sighting out;
  while (!given_up && (out.problem.empty() || !out.counted)) {
    if (out.problem.empty()) {
      client.send("GET", "/ready");
      const http_reply reply = client.receive();
      out.in_ready = clock::now();
      if (reply.status == 503) out.problem = reply.body;
    }
    if (!out.counted && sum_of(client, counters) > before) {
      out.counted = true;
      out.in_metrics = clock::now();
    }
    std::this_thread::sleep_for(1ms);
  }
  return out;
}

}  // namespace

double value_of(const std::string& metrics, const std::string& name) {
  const std::size_t at = metrics.find("\n" + name + " ");
  return at == std::string::npos ? 0 : std::stod(metrics.substr(at + name.size() + 2));
}

json endless(const std::string& prompt) {
  return {{"model", "cedar-tiny"}, {"prompt", prompt},   {"max_tokens", 1900},
          {"temperature", 0},      {"ignore_eos", true}, {"stream", true}};
}

bool contains_any(const std::string& text, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](const std::string& name) { return contains(text, name); });
}

work_under_way::work_under_way(const connector& connect)
    : decoding_(connect()), prompt_(connect()) {
  decoding_->send("POST", "/v1/completions", endless().dump());
  decoding_->wait_for("data: ");
  json ask = endless();
  ask["prompt"] = std::vector<int>(prompt_rows, 50);
  ask["max_tokens"] = 100;
  prompt_->send("POST", "/v1/completions", ask.dump());
  const auto looking = connect();
  const auto metric = [&](const char* name) {
    return value_of(body_of(*looking, "/metrics"), name);
  };
  wait_until([&] { return metric("cedar_scheduler_requests_running") == 2; },
             "the prompt does not run beside the stream");
  const double begin = metric("cedar_generated_tokens_total");
  wait_until([&] { return metric("cedar_generated_tokens_total") >= begin + tokens_meanwhile; },
             "the stream does not go on");
}

clock::time_point work_under_way::check_named(const std::vector<std::string>& names) {
  const auto events = events_of(decoding_->receive().body);
  const auto named = clock::now();
  const json last = json::parse(events.back());
  BOOST_REQUIRE_MESSAGE(last.contains("error"), events.back());
  BOOST_TEST(contains_any(events.back(), names), events.back());
  const http_reply reply = prompt_->receive();
  BOOST_TEST(reply.status == 503);
  BOOST_TEST(contains_any(reply.body, names), reply.body);
  BOOST_TEST(reply.headers.contains("retry-after"));
  return named;
}

fault_watch::fault_watch(std::unique_ptr<http_client> client,
                         const std::vector<std::string>& counters) {
  const double before = sum_of(*client, counters);
  seen_ = std::async(std::launch::async, [this, counters, before, looking = std::move(client)] {
    return look(*looking, counters, before, given_up_);
  });
}

bool fault_watch::over() const {
  return seen_.wait_for(0ms) == std::future_status::ready;
}

fault_watch::sighting fault_watch::wait() {
  if (seen_.wait_for(named_within) != std::future_status::ready) given_up_ = true;
  return seen_.get();
}

void tell_times(const std::string& what, clock::time_point fault, clock::time_point in_stream,
                const fault_watch::sighting& seen, clock::time_point in_log) {
  const auto since = [&](clock::time_point at) {
    return std::to_string(
        std::chrono::duration_cast<std::chrono::milliseconds>(at - fault).count());
  };
  BOOST_TEST_MESSAGE(what << ": named in the stream after " << since(in_stream)
                          << " ms, in /ready after " << since(seen.in_ready)
                          << ", in /metrics after " << since(seen.in_metrics)
                          << ", seen in the log after " << since(in_log));
}

}  // namespace cedar::test
