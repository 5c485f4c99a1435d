// Goal: in whatever order a step's table, taps, verdict and orders reach the drafter, it drafts
// what it would if they came in order; what is not its own is refused. Method: random taps of
// tiny-12, given in all orders that the edges allow; drafts against those of the first order.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "runtime/stage/row_layout.hpp"
#include "runtime/stage/unit.hpp"
#include "tests/unit/runtime/stage/drafter_run.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

constexpr request_id one{1}, two{2};

const model::model_config& config() {
  return tiny_model().config();
}

std::unique_ptr<stage::unit> drafter_unit(std::size_t steps_max = 4, std::uint32_t requests = 4) {
  auto made = tiny_model().make_drafter(cpu_backend(), requests);
  BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
  return stage::make_drafter_unit(std::make_unique<stage::drafting>(std::move(*made), config()),
                                  steps_max);
}

flow::step_table table_of(std::uint64_t step, const std::vector<rows_of>& rows) {
  const std::map<request_id, std::vector<token_id>> ids{{one, random_tokens(1, 60)},
                                                        {two, random_tokens(2, 60)}};
  return step_of(step, ids, rows);
}

/// The blocks of every target layer, of few rows.
std::vector<flow::message> taps_of(const flow::step_table& table) {
  std::vector<flow::message> out;
  for (const std::uint32_t layer : config().dspark.target_layers) {
    kernels::buffer memory(table.rows_count() * config().width * sizeof(kernels::bf16));
    const auto values = random_taps(table.step.value * 31 + layer, table.rows_count());
    std::ranges::copy(std::as_bytes(values.span()).first(memory.bytes()), memory.data());
    flow::row_block block =
        stage::make_block(flow::row_kind::draft_taps, table, config(), std::move(memory));
    block.layer = layer;
    out.emplace_back(std::move(block));
  }
  return out;
}

struct seen {
  std::vector<flow::draft_answers> answers;
  std::vector<step_id> done;  ///< steps whose inputs were used up
};

void give(stage::unit& unit, flow::message message, seen& to) {
  BOOST_TEST(unit.is_input_of_step(message));
  auto out = unit.take(std::move(message));
  BOOST_REQUIRE_MESSAGE(out, (out ? "" : out.error().message));
  for (flow::message& made : out->messages)
    to.answers.push_back(std::get<flow::draft_answers>(std::move(made)));
  for (const stage::unit_work& work : out->work)
    if (work.done) to.done.push_back(work.step);
}

/// Table, three blocks of taps, verdict and orders of one step after a prompt, in this order.
seen in_order(const std::vector<std::size_t>& order) {
  const auto unit = drafter_unit();
  seen out;
  const flow::step_table table = table_of(1, {{one, 0, 9}, {two, 0, 4}});
  std::vector<flow::message> all = taps_of(table);
  all.insert(all.begin(), table);
  all.emplace_back(flow::verdict{step_id{1}, {}, {{one, 9, false}, {two, 4, false}}});
  all.emplace_back(flow::draft_orders{step_id{1}, {}, {{two, 7, 4, 2}, {one, 8, 9, 99}}});
  for (const std::size_t i : order) give(*unit, all[i], out);
  return out;
}

errc refusal(stage::unit& unit, flow::message message) {
  const auto taken = unit.take(std::move(message));
  BOOST_REQUIRE(!taken);
  return taken.error().code;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(drafter_units)

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_AUTO_TEST_CASE(draft_the_same_in_every_order_of_arrival) {
  std::vector<std::size_t> order{0, 1, 2, 3, 4, 5};
  const seen first = in_order(order);
  BOOST_REQUIRE(first.answers.size() == 1U);
  const std::vector<flow::draft>& drafts = first.answers.front().drafts;
  BOOST_REQUIRE(drafts.size() == 2U);
  BOOST_TEST((drafts[0].request == two && drafts[0].position == 4));
  BOOST_TEST(drafts[0].tokens.size() == 2U);  // as many as were ordered
  BOOST_TEST(drafts[1].tokens.size() == config().dspark.block_size);
  for (const flow::draft& draft : drafts) {
    BOOST_TEST(draft.confidences.size() == draft.tokens.size());
    for (const float confidence : draft.confidences) BOOST_TEST((confidence > 0 && confidence < 1));
  }
  while (std::ranges::next_permutation(order).found) {
    const seen other = in_order(order);
    BOOST_REQUIRE(other.answers.size() == 1U);
    BOOST_TEST((other.answers.front().drafts == drafts));
    BOOST_TEST((other.answers.front().step == step_id{1}));
    BOOST_TEST((other.done == std::vector{step_id{1}, step_id{1}}));  // verdict, then orders
  }
}

BOOST_AUTO_TEST_CASE(hold_a_step_until_the_one_before_is_settled_if_its_verdict_is_there) {
  const auto unit = drafter_unit(4, 1);  // room for one request
  seen out;
  const flow::step_table first = table_of(1, {{one, 0, 9}});
  const flow::step_table second = table_of(2, {{two, 0, 4}});
  // All but the last block of the first step.
  std::vector<flow::message> last = taps_of(first);
  give(*unit, first, out);
  give(*unit, last[0], out);
  give(*unit, last[1], out);
  give(*unit, flow::verdict{step_id{1}, {}, {{one, 9, true}}}, out);
  give(*unit, second, out);
  for (flow::message& block : taps_of(second)) give(*unit, std::move(block), out);
  BOOST_TEST(out.done.empty());
  give(*unit, last[2], out);
  BOOST_TEST((out.done == std::vector{step_id{1}}));
  give(*unit, flow::verdict{step_id{2}, {}, {{two, 4, false}}}, out);
  BOOST_TEST((out.done == std::vector{step_id{1}, step_id{2}}));
}

BOOST_AUTO_TEST_CASE(have_nothing_to_say_of_a_request_that_was_freed_meanwhile) {
  const auto unit = drafter_unit();
  seen out;
  for (const std::uint64_t step : {1U, 2U}) {
    const flow::step_table table = table_of(step, {{step == 1 ? one : two, 0, 9}});
    give(*unit, table, out);
    for (flow::message& block : taps_of(table)) give(*unit, std::move(block), out);
  }
  give(*unit, flow::verdict{step_id{1}, {}, {{one, 9, false}}}, out);
  give(*unit, flow::verdict{step_id{2}, {}, {{two, 9, false}, {one, 9, true}}}, out);
  give(*unit, flow::draft_orders{step_id{1}, {}, {{one, 7, 9, 3}, {two, 7, 9, 3}}}, out);
  BOOST_REQUIRE(out.answers.size() == 1U);
  BOOST_TEST((out.answers[0].drafts[0] == flow::draft{one, 9, {}, {}}));
  BOOST_TEST(out.answers[0].drafts[1].tokens.size() == 3U);
}

BOOST_AUTO_TEST_CASE(take_back_what_is_rejected) {
  const auto unit = drafter_unit();
  const auto plain = drafter_unit();
  seen with, without;
  const auto run = [](stage::unit& to, seen& out, const flow::step_table& table,
                      std::uint32_t stand) {
    give(to, table, out);
    for (flow::message& block : taps_of(table)) give(to, std::move(block), out);
    give(to, flow::verdict{table.step, {}, {{one, stand, false}}}, out);
  };
  for (auto* both : {&unit, &plain}) run(**both, with, table_of(1, {{one, 0, 9}}), 9);
  run(*unit, with, table_of(2, {{one, 9, 6}}), 9);  // all six are rejected
  give(*unit, flow::draft_orders{step_id{2}, {}, {{one, 7, 9, 5}}}, with);
  give(*plain, flow::draft_orders{step_id{1}, {}, {{one, 7, 9, 5}}}, without);
  BOOST_TEST((with.answers.at(0).drafts == without.answers.at(0).drafts));
}

BOOST_AUTO_TEST_CASE(wait_for_no_taps_of_a_step_that_has_none) {
  const auto unit = drafter_unit(4, 1);  // room for one request
  seen out;
  const flow::step_table first = table_of(1, {{one, 0, 9}});
  give(*unit, first, out);
  for (flow::message& block : taps_of(first)) give(*unit, std::move(block), out);
  give(*unit, flow::verdict{step_id{1}, {}, {{one, 9, false}}}, out);
  flow::step_table second = table_of(3, {{one, 9, 1}});  // step 2 did not concern it
  second.spans.front().taps = flow::tap_use::none;
  give(*unit, second, out);
  give(*unit, flow::verdict{step_id{3}, {}, {{one, 10, false}}}, out);
  BOOST_TEST((out.done == std::vector{step_id{1}, step_id{3}}));
  // It is forgotten: an order is answered, and its place is free.
  give(*unit, flow::draft_orders{step_id{3}, {}, {{one, 7, 10, 3}}}, out);
  BOOST_TEST((out.answers.at(0).drafts == std::vector<flow::draft>{{one, 10, {}, {}}}));
  const flow::step_table third = table_of(4, {{two, 0, 4}});
  give(*unit, third, out);
  for (flow::message& block : taps_of(third)) give(*unit, std::move(block), out);
  give(*unit, flow::verdict{step_id{4}, {}, {{two, 4, false}}}, out);
  BOOST_TEST(out.done.size() == 4U);
}

BOOST_AUTO_TEST_CASE(forget_everything_with_a_new_epoch) {
  const auto unit = drafter_unit(1, 1);
  seen out;
  give(*unit, table_of(1, {{one, 0, 9}}), out);  // its taps never come
  give(*unit, flow::verdict{step_id{1}, {}, {{one, 9, false}}}, out);
  give(*unit, flow::draft_orders{step_id{1}, {}, {{one, 7, 9, 5}}}, out);
  unit->begin_epoch();
  const flow::step_table table = table_of(2, {{two, 0, 4}});
  give(*unit, table, out);
  for (flow::message& block : taps_of(table)) give(*unit, std::move(block), out);
  give(*unit, flow::verdict{step_id{2}, {}, {{two, 4, false}}}, out);
  BOOST_TEST((out.done == std::vector{step_id{2}}));
  BOOST_TEST(out.answers.empty());
}

BOOST_AUTO_TEST_CASE(refuse_what_is_not_theirs) {
  const auto unit = drafter_unit(1);
  BOOST_TEST((refusal(*unit, flow::proposal{}) == errc::malformed));
  BOOST_TEST((refusal(*unit, flow::row_block{}) == errc::malformed));
  seen out;
  give(*unit, flow::verdict{step_id{3}, {}, {}}, out);
  // Twice, and more than may wait.
  BOOST_TEST((refusal(*unit, flow::verdict{step_id{3}, {}, {}}) == errc::malformed));
  BOOST_TEST((refusal(*unit, flow::verdict{step_id{4}, {}, {}}) == errc::malformed));
  // A position that the request has not reached.
  const auto other = drafter_unit();
  const flow::step_table table = table_of(1, {{one, 0, 9}});
  give(*other, table, out);
  for (flow::message& block : taps_of(table)) give(*other, std::move(block), out);
  give(*other, flow::verdict{step_id{1}, {}, {{one, 9, false}}}, out);
  BOOST_TEST(
      (refusal(*other, flow::draft_orders{step_id{1}, {}, {{one, 7, 10, 5}}}) == errc::mismatch));
}

BOOST_AUTO_TEST_SUITE_END()
