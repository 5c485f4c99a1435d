// Goal: a request's state takes pages before it writes, gives them back, and reserves all or
// nothing. Method: states over small pools at tiny-12's schedule: owners of ratio 2, 2 and 1.
#include "runtime/stage/sequence_state.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>

#include "runtime/model/owner_ratios.hpp"
#include "runtime/stage/layer_stage.hpp"
#include "tests/unit/runtime/stage/tiny_model.hpp"

using namespace cedar;
using namespace cedar::test;
using stage::sequence_state;

namespace {

constexpr memory::page_layout layout{4, 8, 8};

/// Pools of which a state of all layers uses `whole` only.
struct small_pools {
  explicit small_pools(std::size_t pages, const memory::page_layout& of = layout)
      : pools{{of, pages}, {of, 0}, {of, 0}} {}

  std::size_t pages_in_use() const { return pools.whole.pages_in_use(); }
  stage::kv_pools pools;
};

sequence_state state_over(small_pools& pool) {
  return {tiny_model().config(), tiny_model().schedule(), 0, 11, {}, pool.pools};
}

/// Appends entries as `rows` rows after the written ones would, and moves the length.
void write(sequence_state& state, step_id step, std::uint32_t rows) {
  const std::uint32_t end = state.written() + rows;
  const std::vector<std::byte> bytes(std::size_t{8} * rows);
  for (const std::uint32_t owner : {2U, 4U, 6U}) {
    const std::uint32_t ratio = owner == 6 ? 1 : 2;
    const std::uint32_t count = end / ratio - state.written() / ratio;
    BOOST_REQUIRE(state.global(owner).append({bytes.data(), count, 8}, {bytes.data(), count, 8}));
  }
  state.write(step, end);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sequence_state_unit)

BOOST_AUTO_TEST_CASE(reserving_takes_the_pages_of_every_owner) {
  small_pools pool(100);
  sequence_state state = state_over(pool);
  BOOST_REQUIRE(state.reserve(17));  // 8, 8 and 17 entries
  BOOST_TEST(pool.pages_in_use() == 2U + 2 + 5);
  write(state, step_id{1}, 17);
  BOOST_TEST(pool.pages_in_use() == 9U);
  BOOST_REQUIRE(state.reserve(16));  // less than is there
  BOOST_TEST(pool.pages_in_use() == 9U);
}

BOOST_AUTO_TEST_CASE(reserving_beyond_the_pool_changes_nothing) {
  small_pools pool(9);
  sequence_state state = state_over(pool);
  BOOST_REQUIRE(state.reserve(8));
  write(state, step_id{1}, 8);
  BOOST_TEST(pool.pages_in_use() == 4U);
  const result<void> refused = state.reserve(21);  // 3 + 3 + 6 pages: the last owner finds none
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::capacity));
  BOOST_TEST(pool.pages_in_use() == 4U);
  BOOST_TEST(state.written() == 8U);
  BOOST_TEST(state.reserve(17).has_value());
}

BOOST_AUTO_TEST_CASE(truncating_drops_entries_and_unused_reservations) {
  small_pools pool(100);
  sequence_state state = state_over(pool);
  write(state, step_id{1}, 17);
  state.truncate(9);
  BOOST_TEST(state.written() == 9U);
  BOOST_TEST(state.global(2).written() == 4U);
  BOOST_TEST(state.global(6).written() == 9U);
  BOOST_TEST(pool.pages_in_use() == 1U + 1 + 3);
  BOOST_REQUIRE(state.reserve(40));
  state.truncate(9);
  BOOST_TEST(pool.pages_in_use() == 5U);
  state.truncate(20);  // beyond its end
  BOOST_TEST(state.written() == 9U);
}

BOOST_AUTO_TEST_CASE(verdicts_commit_and_only_that_on_the_last_step_takes_back) {
  small_pools pool(100);
  sequence_state state = state_over(pool);
  write(state, step_id{1}, 10);
  write(state, step_id{2}, 6);
  state.commit(step_id{1}, 10);
  BOOST_TEST(state.committed() == 10U);
  BOOST_TEST(state.written() == 16U);
  state.commit(step_id{2}, 12);
  BOOST_TEST(state.committed() == 12U);
  BOOST_TEST(state.written() == 12U);
}

BOOST_AUTO_TEST_CASE(pages_return_when_a_state_ends) {
  small_pools pool(100);
  {
    sequence_state state = state_over(pool);
    write(state, step_id{1}, 30);
    BOOST_REQUIRE(state.reserve(60));
  }
  BOOST_TEST(pool.pages_in_use() == 0U);
}

BOOST_AUTO_TEST_CASE(a_pool_of_a_kv_budget_holds_whatever_the_budget_allows) {
  // Random requests within random budgets take the pages of their positions: the pool never ends.
  constexpr std::uint32_t context = 1000;
  constexpr std::uint32_t requests = 9;
  constexpr memory::page_layout full_pages{memory::default_page_entries, 1, 1};
  const model::schedule& schedule = tiny_model().schedule();
  const std::uint32_t granule = memory::default_page_entries * model::ratios_lcm(schedule);
  BOOST_TEST(granule == 128U);
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t budget = 8 + random() % 70;
    const auto pages =
        stage::pages_needed(schedule, {0, 11, requests, context, {}, {}, budget}).whole;
    small_pools pool(pages, full_pages);
    std::vector<sequence_state> states;
    std::uint64_t left = budget;
    while (left > 0 && states.size() < requests) {
      const std::uint64_t most = std::min<std::uint64_t>(context, left * granule);
      const auto positions = static_cast<std::uint32_t>(1 + random() % most);
      left -= (positions + granule - 1) / granule;
      states.push_back(state_over(pool));
      BOOST_REQUIRE(states.back().reserve(positions));
    }
  }
  // A budget that binds is used up by requests that fill their granules.
  const auto pages = stage::pages_needed(schedule, {0, 11, requests, context, {}, {}, 8}).whole;
  small_pools pool(pages, full_pages);
  std::vector<sequence_state> states;
  for (int i = 0; i < 4; ++i) {
    states.push_back(state_over(pool));
    BOOST_REQUIRE(states.back().reserve(2 * granule));
  }
  BOOST_TEST(pool.pages_in_use() == pages);
}

BOOST_AUTO_TEST_CASE(a_stages_pool_holds_as_many_full_requests_as_it_may_have) {
  const auto needed = [&](std::uint32_t first, std::uint32_t last, std::uint32_t context) {
    return stage::pages_needed(tiny_model().schedule(), {first, last, 3, context}).total();
  };
  BOOST_TEST(needed(0, 11, 128) == 3U * (1 + 1 + 2));
  BOOST_TEST(needed(0, 11, 129) == 3U * (1 + 1 + 3));
  BOOST_TEST(needed(0, 11, 130) == 3U * (2 + 2 + 3));
  BOOST_TEST(needed(0, 5, 130) == 3U * (2 + 2));
  BOOST_TEST(needed(7, 11, 130) == 0U);
  // And so it is: three requests fill their contexts.
  tiny_run run({390, 3, 130});
  std::vector<rows_of> rows;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    run.ids[request_id{id}] = random_tokens(id, 130);
    rows.push_back({request_id{id}, 0, 130});
  }
  run.step(rows);
  BOOST_TEST(run.engine->layers().pages().pages_in_use() ==
             run.engine->layers().pages().pages_max());
  BOOST_TEST(run.engine->layers().pages().pages_max() == needed(0, 11, 130));
}

BOOST_AUTO_TEST_SUITE_END()
