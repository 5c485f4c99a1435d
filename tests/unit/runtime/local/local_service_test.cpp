// Goal: the engine of this process as a service gives every request what it gets alone, ends every
// one of them exactly once, and frees what a cancelled one held. Method: tiny-12 with requests from
// several threads; an event that holds the engine's thread, so that a moment can be chosen.
#include "runtime/local/local_service.hpp"

#include <boost/test/unit_test.hpp>
#include <deque>
#include <future>
#include <numeric>
#include <thread>

#include "kernels/registry/registry.hpp"

using namespace cedar;

namespace {

constexpr std::chrono::seconds patience{60};

const stage::model_source& tiny_model() {
  static const auto opened = stage::model_source::open(CEDAR_TEST_DATA "/golden/tiny-12");
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
  return **opened;
}

std::unique_ptr<local::local_engine> engine_of(const local::engine_options& options) {
  static const auto backend = kernels::make_backend("cpu");
  BOOST_REQUIRE(backend);
  auto opened = local::local_engine::open(tiny_model(), *backend, options);
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
  return std::move(*opened);
}

session::generation_request request_of(std::uint32_t number, std::uint32_t tokens) {
  session::generation_request out;
  for (std::uint32_t i = 0; i < 5 + number; ++i)
    out.prompt.push_back(static_cast<token_id>(3 + (number * 71 + i * 13) % 500));
  out.new_tokens_max = tokens;
  out.ignore_eos = true;
  return out;
}

/// What a request was told.
struct told {
  std::vector<token_id> tokens;
  std::uint32_t ends = 0;
  std::optional<error> failure;
};

/// A request whose end can be waited for.
class client {
 public:
  /// `on_token`: called in the engine's thread with how many there are.
  session::request_events events(std::function<void(std::size_t)> on_token = {}) {
    return {[this, on_token](const session::row_event& row) {
              so_far_.tokens.push_back(row.token);
              if (on_token) on_token(so_far_.tokens.size());
            },
            [this](const session::usage&) { end(); },
            [this](const error& what) {
              so_far_.failure = what;
              end();
            }};
  }
  bool ended() const { return end_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  /// Of a request that has ended.
  const told& so_far() const { return so_far_; }
  const told& wait() {
    BOOST_REQUIRE(end_.wait_for(patience) == std::future_status::ready);
    return so_far_;
  }

 private:
  void end() {
    if (++so_far_.ends == 1) promise_.set_value();
  }
  told so_far_;
  std::promise<void> promise_;
  std::future<void> end_ = promise_.get_future();
};

/// Holds the engine's thread from a token of a request until it is let go.
class gate {
 public:
  std::function<void(std::size_t)> at(std::size_t token) {
    return [this, token](std::size_t count) {
      if (count != token) return;
      reached_.set_value();
      open_.get_future().wait();
    };
  }
  void wait() {
    BOOST_REQUIRE(reached_.get_future().wait_for(patience) == std::future_status::ready);
  }
  void open() { open_.set_value(); }

 private:
  std::promise<void> reached_;
  std::promise<void> open_;
};

std::vector<token_id> alone(std::uint32_t number, std::uint32_t tokens) {
  const auto engine = engine_of({});
  std::vector<token_id> out;
  const auto ran = engine->generate(
      {request_of(number, tokens)},
      {.on_row = [&](std::size_t, const session::row_event& row) { out.push_back(row.token); },
       .on_tap = {}});
  BOOST_REQUIRE(ran);
  return out;
}

/// Waits until the engine has nothing to do.
void wait_idle(const local::local_service& service) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (service.status().load != session::scheduler_load{}) {
    BOOST_REQUIRE(std::chrono::steady_clock::now() < until);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(local_service)

BOOST_AUTO_TEST_CASE(gives_each_request_what_it_gets_alone) {
  const auto engine = engine_of({.rows_per_step = 16, .requests_max = 3});
  local::local_service service(*engine, 16);
  std::deque<client> clients(8);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < clients.size(); ++i)
    threads.emplace_back([&, i] { service.submit(request_of(i, 6 + i), clients[i].events()); });
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t i = 0; i < clients.size(); ++i) {
    const told& got = clients[i].wait();
    BOOST_TEST(!got.failure);
    BOOST_TEST(got.tokens == alone(i, 6 + i), boost::test_tools::per_element());
  }
  wait_idle(service);
  for (const client& each : clients) BOOST_TEST(each.so_far().ends == 1U);
  BOOST_TEST(service.status().units.at(0).up);
}

BOOST_AUTO_TEST_CASE(cancels_what_waits_and_what_runs) {
  const auto engine = engine_of({.rows_per_step = 16, .requests_max = 1});
  local::local_service service(*engine, 16);
  client running, waiting, other;
  gate held;
  const request_id first = service.submit(request_of(1, 200), running.events(held.at(2)));
  const request_id second = service.submit(request_of(2, 4), waiting.events());
  service.submit(request_of(3, 4), other.events());
  held.wait();
  service.cancel(first);
  service.cancel(second);
  held.open();
  BOOST_TEST((running.wait().failure.value().code == errc::cancelled));
  BOOST_TEST(running.wait().tokens.size() == 2U);
  BOOST_TEST((waiting.wait().failure.value().code == errc::cancelled));
  BOOST_TEST(waiting.wait().tokens.empty());
  BOOST_TEST(other.wait().tokens == alone(3, 4), boost::test_tools::per_element());
  wait_idle(service);
  service.cancel(first);  // over: nothing happens
  service.cancel(request_id{77});
  client again;
  service.submit(request_of(3, 4), again.events());
  BOOST_TEST(again.wait().tokens == other.wait().tokens, boost::test_tools::per_element());
  BOOST_TEST(running.wait().ends == 1U);
}

BOOST_AUTO_TEST_CASE(computes_no_more_for_what_is_cancelled) {
  const auto engine = engine_of({.rows_per_step = 16, .requests_max = 2});
  local::local_service service(*engine, 16);
  client given_up, other;
  gate first, later;
  const request_id request = service.submit(request_of(1, 200), given_up.events(first.at(2)));
  service.submit(request_of(3, 20), other.events(later.at(10)));
  first.wait();
  service.cancel(request);
  first.open();
  later.wait();
  BOOST_TEST(service.status().load.running == 1U);
  later.open();
  BOOST_TEST(other.wait().tokens == alone(3, 20), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(refuses_what_cannot_run) {
  const auto engine = engine_of({.rows_per_step = 16, .requests_max = 1, .context_max = 32});
  local::local_service service(*engine, 1);
  BOOST_TEST(service.limits().context_max == 32U);
  client empty, longer, running, queued, one_too_many;
  service.submit({}, empty.events());
  BOOST_TEST((empty.wait().failure.value().code == errc::invalid_argument));
  service.submit(request_of(40, 1), longer.events());
  BOOST_TEST((longer.wait().failure.value().code == errc::capacity));
  gate held;
  service.submit(request_of(1, 8), running.events(held.at(1)));
  held.wait();
  service.submit(request_of(2, 2), queued.events());
  service.submit(request_of(3, 2), one_too_many.events());
  held.open();
  BOOST_TEST((one_too_many.wait().failure.value().code == errc::capacity));
  BOOST_TEST(!queued.wait().failure);
  BOOST_TEST(!running.wait().failure);
  wait_idle(service);
}

BOOST_AUTO_TEST_CASE(goes_on_after_a_defect) {
  const auto engine = engine_of({.rows_per_step = 16, .requests_max = 1});
  local::local_service service(*engine, 16);
  client running, waiting, later;
  gate held;
  const auto hold = held.at(2);
  service.submit(request_of(1, 200), running.events([&](std::size_t count) {
    hold(count);
    if (count == 4) throw std::logic_error("two owners of one page");
  }));
  held.wait();
  service.submit(request_of(2, 4), waiting.events());
  held.open();
  const error why = running.wait().failure.value();
  BOOST_TEST((why.code == errc::defect));
  BOOST_TEST(why.message == "engine: two owners of one page");
  BOOST_TEST(running.wait().tokens.size() == 4U);
  BOOST_TEST(waiting.wait().tokens == alone(2, 4), boost::test_tools::per_element());
  service.submit(request_of(1, 4), later.events());
  BOOST_TEST(later.wait().tokens == alone(1, 4), boost::test_tools::per_element());
  wait_idle(service);
  BOOST_TEST(service.status().problem == "");
  BOOST_TEST(service.status().recoveries == 1U);
  BOOST_TEST(engine->layers().pages().pages_in_use() == 0U);
  BOOST_TEST(running.wait().ends == 1U);
}

BOOST_AUTO_TEST_CASE(ends_everything_with_itself) {
  const auto engine = engine_of({.rows_per_step = 16, .requests_max = 1});
  client running, waiting, late;
  gate held;
  {
    local::local_service service(*engine, 16);
    service.submit(request_of(1, 200), running.events(held.at(1)));
    service.submit(request_of(2, 4), waiting.events());
    held.wait();
    service.submit(request_of(3, 4), late.events());
    held.open();
  }
  for (client* each : {&running, &waiting, &late}) {
    BOOST_TEST(each->ended());
    BOOST_TEST((each->wait().failure.value().code == errc::cancelled));
    BOOST_TEST(each->wait().ends == 1U);
  }
}

BOOST_AUTO_TEST_CASE(says_what_its_policy_chose) {
  const auto plain = engine_of({});
  BOOST_TEST(!local::local_service(*plain, 1).status().load.policy);
  const auto engine = engine_of({.draft_policy = true});
  local::local_service service(*engine, 1);
  client one;
  service.submit(request_of(1, 60), one.events());
  BOOST_TEST(one.wait().tokens == alone(1, 60), boost::test_tools::per_element());
  while (service.status().load.running > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto report = service.status().load.policy;
  BOOST_REQUIRE(report);
  BOOST_TEST(std::accumulate(report->lengths.begin(), report->lengths.end(), std::uint64_t{0}) >=
             session::draft_policy::trial_steps);
  BOOST_TEST(report->realised_seconds > 0);
}

BOOST_AUTO_TEST_SUITE_END()
