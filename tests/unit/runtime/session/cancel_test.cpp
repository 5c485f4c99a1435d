// Goal: a cancelled request gives back everything within a step, says nothing more, and changes
// nobody else's answer. Method: runs by hand and seeded random ones over a fake pipeline.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <set>

#include "tests/unit/runtime/session/fake_pipeline.hpp"

using namespace cedar;
using namespace cedar::session;
using test::fake_pipeline;

namespace {

scheduler_limits limits_of() {
  return {.rows_per_step = 4,
          .requests_max = 2,
          .queue_max = 8,
          .context_max = 20,
          .steps_in_flight = 2,
          .vocabulary = 50,
          .lookback = 3,
          .eos_tokens = {1},
          .window = 3};
}

generation_request prompt_of(std::vector<token_id> ids, std::uint32_t new_tokens_max) {
  generation_request out;
  out.prompt = std::move(ids);
  out.new_tokens_max = new_tokens_max;
  out.ignore_eos = true;
  return out;
}

/// Whether the verdict frees the request; it must speak of it.
bool freed(const flow::verdict& verdict, request_id request) {
  const auto found = std::ranges::find(verdict.commitments, request, &flow::commitment::request);
  BOOST_REQUIRE(found != verdict.commitments.end());
  return found->finished;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cancel)

BOOST_AUTO_TEST_CASE(forgets_a_request_that_waits) {
  step_scheduler core(limits_of());
  const auto ids = core.submit({prompt_of({2}, 4), prompt_of({3}, 4), prompt_of({4}, 4)});
  BOOST_REQUIRE(ids);
  BOOST_REQUIRE(core.next_step());
  BOOST_TEST(core.load().waiting == 1U);
  core.cancel(ids->at(2));
  BOOST_TEST(core.requests() == 2U);
  BOOST_TEST(core.load().waiting == 0U);
  core.cancel({77});
  BOOST_TEST(core.requests() == 2U);
}

BOOST_AUTO_TEST_CASE(frees_by_the_last_step_in_flight) {
  const scheduler_limits limits = limits_of();
  step_scheduler core(limits);
  fake_pipeline pipeline(limits);
  const request_id id = core.submit({prompt_of({2, 3, 4, 5, 6, 7, 8, 9}, 4)})->front();
  for (int step = 0; step < 2; ++step) {
    auto table = core.next_step();
    BOOST_REQUIRE(table);
    pipeline.take(std::move(*table));
  }
  core.cancel(id);
  const auto first = core.accept(pipeline.answer());
  BOOST_REQUIRE(first);
  BOOST_TEST(!freed(first->verdict, id));
  BOOST_TEST(!core.next_step());
  const auto second = core.accept(pipeline.answer());
  BOOST_REQUIRE(second);
  BOOST_TEST(freed(second->verdict, id));
  BOOST_TEST(second->events.empty());
  BOOST_TEST(core.requests() == 0U);
  BOOST_TEST((core.load() == scheduler_load{}));
}

BOOST_AUTO_TEST_CASE(frees_by_one_more_step_if_none_is_in_flight) {
  const scheduler_limits limits = limits_of();
  step_scheduler core(limits);
  fake_pipeline pipeline(limits);
  const request_id id = core.submit({prompt_of({2, 3, 4, 5, 6, 7, 8, 9}, 4)})->front();
  pipeline.take(*core.next_step());
  BOOST_REQUIRE(core.accept(pipeline.answer()));
  core.cancel(id);
  auto more = core.next_step();
  BOOST_REQUIRE(more);
  pipeline.take(std::move(*more));
  BOOST_TEST(!core.next_step());
  const auto outcome = core.accept(pipeline.answer());
  BOOST_REQUIRE(outcome);
  BOOST_TEST(freed(outcome->verdict, id));
  BOOST_TEST(outcome->events.empty());
  BOOST_TEST(core.requests() == 0U);
}

BOOST_AUTO_TEST_CASE(changes_nobody_elses_answer) {
  constexpr unsigned seed = 411;
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937 random(seed);
  const scheduler_limits limits = limits_of();
  for (int round = 0; round < 200; ++round) {
    step_scheduler core(limits);
    fake_pipeline pipeline(limits);
    std::vector<generation_request> asks;
    for (int i = 0; i < 5; ++i) {
      std::vector<token_id> prompt(1 + random() % 9);
      for (token_id& token : prompt) token = static_cast<token_id>(2 + random() % 40);
      asks.push_back(prompt_of(std::move(prompt), 1 + static_cast<std::uint32_t>(random() % 6)));
    }
    const auto ids = *core.submit(asks);
    std::set<request_id> cancelled;
    std::map<request_id, std::vector<token_id>> tokens;
    while (core.requests() > 0) {
      if (random() % 4 == 0) {
        const request_id id = ids[random() % ids.size()];
        core.cancel(id);
        cancelled.insert(id);
      }
      auto table = random() % 2 == 0 ? core.next_step() : std::nullopt;
      if (table) {
        pipeline.take(std::move(*table));
        continue;
      }
      if (pipeline.steps() == 0) continue;
      const auto outcome = core.accept(pipeline.answer());
      BOOST_REQUIRE(outcome);
      pipeline.apply(outcome->verdict);
      for (const row_event& event : outcome->events) {
        BOOST_REQUIRE(!cancelled.contains(event.request));
        tokens[event.request].push_back(event.token);
      }
    }
    BOOST_TEST(pipeline.requests() == 0U);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (cancelled.contains(ids[i])) continue;
      std::vector<token_id> expected;
      for (const auto& event : test::run_alone(asks[i], limits).events)
        expected.push_back(event.token);
      BOOST_TEST((tokens[ids[i]] == expected));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
