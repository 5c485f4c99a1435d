// Goal: a step runs when all its inputs are there, whatever their order, and steps run in order.
// Method: seeded shuffles of the inputs of several steps; then everything that a join must refuse.
#include "runtime/stage/step_join.hpp"

#include <algorithm>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <random>

using namespace cedar;
using flow::row_kind;
using stage::join_time;
using stage::step_join;

namespace {

flow::step_table table_of(std::uint64_t step) {
  flow::step_table table;
  table.step = step_id{step};
  table.tokens = {static_cast<token_id>(step)};
  return table;
}

flow::row_block block_of(std::uint64_t step, row_kind kind, std::uint32_t layer = 0,
                         std::uint32_t slice = 0) {
  flow::row_block block;
  block.step = step_id{step};
  block.kind = kind;
  block.layer = layer;
  block.slice = slice;
  block.rows_count = static_cast<std::uint32_t>(step);
  return block;
}

// The second module's rows come from two shards.
const stage::join_inputs stage_inputs{
    row_kind::activation,
    {{row_kind::engram_rows, 4}, {row_kind::engram_slots, 9, 1}, {row_kind::engram_slots, 9, 2}}};

join_time at(int tick) {
  return join_time(join_time::duration(tick));
}

bool refused(const result<void>& added, const std::string& text) {
  return !added && added.error().code == errc::malformed &&
         added.error().message.find(text) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(step_join_unit)

BOOST_DATA_TEST_CASE(any_order_of_arrival_gives_whole_steps_in_order,
                     boost::unit_test::data::xrange(1, 21), seed) {
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  constexpr std::uint64_t steps = 5;
  std::vector<std::variant<flow::step_table, flow::row_block>> inputs;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    inputs.emplace_back(table_of(step));
    inputs.emplace_back(block_of(step, row_kind::activation));
    inputs.emplace_back(block_of(step, row_kind::engram_rows, 4));
    inputs.emplace_back(block_of(step, row_kind::engram_slots, 9, 1));
    inputs.emplace_back(block_of(step, row_kind::engram_slots, 9, 2));
  }
  std::shuffle(inputs.begin(), inputs.end(), random);
  step_join join(stage_inputs, steps);
  std::map<std::uint64_t, int> first_arrival;
  std::map<std::uint64_t, int> last_engram;
  std::map<std::uint64_t, int> last_other;
  std::uint64_t next = 1;
  int tick = 0;
  for (const auto& input : inputs) {
    ++tick;
    const std::uint64_t step =
        std::visit([](const auto& value) { return value.step.value; }, input);
    first_arrival.emplace(step, tick);
    const auto* block = std::get_if<flow::row_block>(&input);
    const bool of_engram = block != nullptr && block->kind != row_kind::activation;
    (of_engram ? last_engram : last_other)[step] = tick;
    std::visit([&](const auto& value) { BOOST_REQUIRE(join.add(value, at(tick))); }, input);
    while (const auto made = join.pop()) {
      BOOST_REQUIRE_EQUAL(made->table.step.value, next);
      BOOST_REQUIRE_EQUAL(made->table.tokens.front(), static_cast<token_id>(next));
      BOOST_REQUIRE((made->rows && made->rows->step.value == next));
      BOOST_REQUIRE_EQUAL(made->engram.size(), 3U);
      BOOST_REQUIRE_EQUAL(made->engram[0].layer, 4U);
      BOOST_REQUIRE_EQUAL(made->engram[1].slice, 1U);
      BOOST_REQUIRE_EQUAL(made->engram[2].slice, 2U);
      BOOST_REQUIRE((made->first_arrival == at(first_arrival.at(next))));
      const int late = last_engram.at(next) - last_other.at(next);
      BOOST_REQUIRE_EQUAL(made->engram_wait.has_value(), late > 0);
      if (late > 0) BOOST_REQUIRE_EQUAL(made->engram_wait->count(), late);
      ++next;
    }
  }
  BOOST_TEST(next == steps + 1);
  BOOST_TEST(join.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(a_unit_that_waits_for_the_table_alone_runs_at_once) {
  step_join join({}, 1);
  BOOST_REQUIRE(join.add(table_of(1), at(0)));
  BOOST_TEST(join.pop().has_value());
  BOOST_TEST(!join.pop().has_value());
}

BOOST_AUTO_TEST_CASE(the_same_input_twice_is_malformed_and_the_first_one_stays) {
  step_join join(stage_inputs, 2);
  BOOST_REQUIRE(join.add(table_of(1), at(0)));
  BOOST_REQUIRE(join.add(block_of(1, row_kind::activation), at(0)));
  BOOST_REQUIRE(join.add(block_of(1, row_kind::engram_rows, 4), at(0)));
  BOOST_TEST(refused(join.add(table_of(1), at(1)), "step 1: a second step table"));
  BOOST_TEST(refused(join.add(block_of(1, row_kind::activation), at(1)), "a second block of rows"));
  BOOST_TEST(refused(join.add(block_of(1, row_kind::engram_rows, 4), at(1)),
                     "a second block of Engram rows"));
  BOOST_TEST(!join.pop().has_value());
  BOOST_REQUIRE(join.add(block_of(1, row_kind::engram_slots, 9, 2), at(1)));
  BOOST_TEST(!join.pop().has_value());
  BOOST_REQUIRE(join.add(block_of(1, row_kind::engram_slots, 9, 1), at(1)));
  const auto made = join.pop();
  BOOST_REQUIRE(made);
  BOOST_TEST((made->first_arrival == at(0)));
}

BOOST_AUTO_TEST_CASE(inputs_that_the_unit_does_not_take_are_malformed) {
  step_join join(stage_inputs, 2);
  BOOST_TEST(refused(join.add(block_of(1, row_kind::embedded), at(0)), "step 1: rows of a kind"));
  BOOST_TEST(refused(join.add(block_of(1, row_kind::head_input), at(0)), "rows of a kind"));
  BOOST_TEST(refused(join.add(block_of(1, row_kind::engram_rows, 5), at(0)), "rows of a kind"));
  BOOST_TEST(refused(join.add(block_of(1, row_kind::engram_rows, 9), at(0)), "rows of a kind"));
  BOOST_TEST(refused(join.add(block_of(1, row_kind::engram_slots, 9), at(0)), "rows of a kind"));
  BOOST_TEST(join.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(more_waiting_steps_than_the_bound_are_malformed) {
  step_join join(stage_inputs, 2);
  BOOST_REQUIRE(join.add(table_of(1), at(0)));
  BOOST_REQUIRE(join.add(block_of(2, row_kind::activation), at(0)));
  BOOST_TEST(refused(join.add(table_of(3), at(0)), "step 3 arrived while 2 steps wait"));
  BOOST_TEST(refused(join.add(block_of(3, row_kind::activation), at(0)), "while 2 steps wait"));
  BOOST_TEST(join.add(table_of(2), at(0)).has_value());
  BOOST_TEST(join.waiting() == 2U);
  join.clear();
  BOOST_TEST(join.waiting() == 0U);
  BOOST_TEST(join.add(table_of(3), at(0)).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
