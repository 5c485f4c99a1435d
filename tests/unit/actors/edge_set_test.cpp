// Goal: a unit's edges number, credit and deliver as their contracts say, so that a unit only sees
// messages. Method: an edge set whose deliveries are written down; its far ends are played by hand.
#include "actors/edge_set.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/base/check.hpp"
#include "tests/unit/actors/test_system.hpp"

using namespace cedar;
using namespace cedar::actors;
using namespace cedar::test;
using flow::row_kind;

namespace {

/// An edge set, and what it delivered, in order.
struct recorded_set {
  explicit recorded_set(const std::vector<edge_end>& ends, std::size_t trace_events = 0)
      : trace(trace_events), set(trace, [this](const packet_sink&, packet_ref packet) {
          sent.push_back(std::move(packet));
        }) {
    set.bind(ends, {});
  }

  /// "edge:sequence kind" of everything delivered since the last call.
  std::vector<std::string> take() {
    std::vector<std::string> out;
    for (const packet_ref& packet : sent)
      out.push_back(std::to_string(packet->head.edge.value) + ":" +
                    std::to_string(packet->head.sequence) + " " +
                    std::string(flow::kind_of(packet->body)));
    sent.clear();
    return out;
  }

  trace_recorder trace;
  std::vector<packet_ref> sent;
  edge_set set;
};

using texts = std::vector<std::string>;

flow::verdict verdict_of(std::uint64_t step, epoch_id epoch = {}) {
  return {step_id{step}, epoch, {{request_id{1}, 1, false}}};
}

flow::credit credit_of(std::uint32_t messages, std::uint64_t bytes, epoch_id epoch = {}) {
  return {epoch, messages, bytes};
}

const auto by_element = boost::test_tools::per_element();

}  // namespace

BOOST_AUTO_TEST_SUITE(edge_sets)

BOOST_AUTO_TEST_CASE(a_message_leaves_on_every_edge_that_carries_its_kind) {
  recorded_set one({edge_end_of(1, true, "step_table", {}), edge_end_of(2, true, "verdict", {}),
                    edge_end_of(3, true, "step_table", {})});
  one.set.send(table_of(1));
  BOOST_TEST(one.take() == (texts{"1:0 step_table", "3:0 step_table"}), by_element);
  one.set.send(verdict_of(1));
  BOOST_TEST(one.take() == texts{"2:0 verdict"}, by_element);
  one.set.send(table_of(2));
  BOOST_TEST(one.take() == (texts{"1:1 step_table", "3:1 step_table"}), by_element);
}

BOOST_AUTO_TEST_CASE(a_drafter_gets_what_concerns_it) {
  std::vector<edge_end> ends{edge_end_of(1, true, "step_table", {}),
                             edge_end_of(2, true, "step_table", {})};
  ends[1].to_drafter = true;
  recorded_set one(ends);
  one.set.send(table_of(1), false);
  BOOST_TEST(one.take() == texts{"1:0 step_table"}, by_element);
  one.set.send(table_of(2), true);
  BOOST_TEST(one.take() == (texts{"1:1 step_table", "2:0 step_table"}), by_element);
}

BOOST_AUTO_TEST_CASE(engram_rows_leave_on_the_edge_of_their_layer) {
  recorded_set one({edge_end_of(1, true, "engram_rows", {}, 2, 4),
                    edge_end_of(2, true, "engram_rows", {}, 2, 9)});
  one.set.send(block_of(1, row_kind::engram_rows, 9));
  BOOST_TEST(one.take() == texts{"2:0 engram_rows"}, by_element);
  one.set.send(block_of(1, row_kind::engram_rows, 4));
  BOOST_TEST(one.take() == texts{"1:0 engram_rows"}, by_element);
}

BOOST_AUTO_TEST_CASE(rows_for_experts_leave_on_the_edge_of_their_slice_whatever_their_layer) {
  std::vector<edge_end> ends{
      edge_end_of(1, true, "expert_rows", {}), edge_end_of(2, true, "expert_rows", {}),
      edge_end_of(3, true, "expert_outputs", {}), edge_end_of(4, true, "expert_outputs", {})};
  ends[1].slice = 1;
  ends[3].reader = 6;
  recorded_set one(ends);
  flow::row_block rows = block_of(1, row_kind::expert_rows, 7);
  rows.slice = 1;
  one.set.send(rows);
  rows.layer = 8;
  one.set.send(rows);
  BOOST_TEST(one.take() == (texts{"2:0 expert_rows", "2:1 expert_rows"}), by_element);
  flow::row_block outputs = block_of(1, row_kind::expert_outputs, 7);
  outputs.reader = 6;
  one.set.send(outputs);
  BOOST_TEST(one.take() == texts{"4:0 expert_outputs"}, by_element);
  rows.slice = 2;
  BOOST_CHECK_THROW(one.set.send(rows), defect);
}

BOOST_AUTO_TEST_CASE(queries_leave_on_the_edge_of_their_shard_and_keys_on_that_of_their_owner_too) {
  std::vector<edge_end> ends{
      edge_end_of(1, true, "index_query", {}), edge_end_of(2, true, "index_query", {}),
      edge_end_of(3, true, "index_keys", {}), edge_end_of(4, true, "index_keys", {})};
  ends[1].slice = ends[3].slice = 1;
  ends[2].layer = ends[3].layer = 7;
  recorded_set one(ends);
  flow::row_block block = block_of(1, row_kind::index_query, 7);
  block.slice = 1;
  one.set.send(block);
  BOOST_TEST(one.take() == texts{"2:0 index_query"}, by_element);
  block.kind = row_kind::index_keys;
  one.set.send(block);
  BOOST_TEST(one.take() == texts{"4:0 index_keys"}, by_element);
  block.layer = 8;
  BOOST_CHECK_THROW(one.set.send(block), defect);
}

BOOST_AUTO_TEST_CASE(a_message_that_no_edge_carries_is_a_defect) {
  recorded_set one(
      {edge_end_of(1, true, "engram_rows", {}, 2, 4), edge_end_of(2, false, "verdict", {})});
  BOOST_CHECK_THROW(one.set.send(table_of(1)), defect);
  BOOST_CHECK_THROW(one.set.send(block_of(1, row_kind::engram_rows, 5)), defect);
  BOOST_CHECK_THROW(one.set.send(verdict_of(1)), defect);  // verdicts arrive here
  BOOST_TEST(one.take().empty());
}

BOOST_AUTO_TEST_CASE(messages_wait_for_credit_and_leave_when_it_comes) {
  recorded_set one({edge_end_of(1, true, "verdict", {}, 1)});
  const std::uint64_t bytes = flow::credit_bytes(verdict_of(1));
  for (std::uint64_t step = 1; step <= 3; ++step) one.set.send(verdict_of(step));
  BOOST_TEST(one.take() == texts{"1:0 verdict"}, by_element);
  BOOST_REQUIRE(one.set.waiting_edge("verdict") != nullptr);
  BOOST_TEST(*one.set.waiting_edge("verdict") == "edge-1");
  BOOST_TEST(one.set.waiting_edge("step_table") == nullptr);
  const auto granted = one.set.receive(packet_of(1, 0, credit_of(1, bytes)));
  BOOST_REQUIRE(granted);
  BOOST_TEST(!granted->has_value());  // credit is not the unit's business
  BOOST_TEST(one.take() == texts{"1:1 verdict"}, by_element);
  BOOST_REQUIRE(one.set.receive(packet_of(1, 1, credit_of(1, bytes))));
  BOOST_TEST(one.take() == texts{"1:2 verdict"}, by_element);
  BOOST_TEST(one.set.waiting_edge("verdict") == nullptr);
}

BOOST_AUTO_TEST_CASE(more_messages_than_may_wait_are_a_defect) {
  recorded_set one({edge_end_of(1, true, "verdict", {}, 1)});
  for (std::uint64_t step = 1; step <= 5; ++step) one.set.send(verdict_of(step));
  BOOST_CHECK_THROW(one.set.send(verdict_of(6)), defect);
}

BOOST_AUTO_TEST_CASE(a_steps_inputs_give_their_credit_back_together_and_no_others) {
  recorded_set one({edge_end_of(1, false, "step_table", {}, 4),
                    edge_end_of(2, false, "activation", {}, 4),
                    edge_end_of(3, false, "engram_rows", {}, 4)});
  for (std::uint64_t step = 1; step <= 2; ++step) {
    BOOST_REQUIRE(one.set.receive(packet_of(1, step - 1, table_of(step))));
    BOOST_REQUIRE(one.set.receive(packet_of(2, step - 1, block_of(step, row_kind::activation))));
  }
  const auto rows = one.set.receive(packet_of(3, 0, block_of(1, row_kind::engram_rows)));
  BOOST_REQUIRE(rows);
  BOOST_REQUIRE(rows->has_value());
  BOOST_TEST(one.take().empty());
  one.set.consumed_step(step_id{2});
  BOOST_TEST(one.take().empty());  // less than half of a window is owed, and step 1 is held
  one.set.consumed_step(step_id{1});
  BOOST_REQUIRE_EQUAL(one.sent.size(), 3U);
  BOOST_TEST((one.sent.back()->head.edge == edge_id{3}));
  BOOST_TEST(std::get<flow::credit>(one.sent.back()->body).messages == 1U);
  one.sent.pop_back();
  for (const packet_ref& packet : one.sent) {
    const auto& credit = std::get<flow::credit>(packet->body);
    const bool table = packet->head.edge == edge_id{1};
    BOOST_TEST(credit.messages == 2U);
    BOOST_TEST(credit.bytes == 2 * (table ? flow::credit_bytes(table_of(1))
                                          : flow::credit_bytes(block_of(1, row_kind::activation))));
  }
  one.set.consumed_step(step_id{2});  // nothing more to give
  BOOST_TEST(one.sent.size() == 2U);
}

BOOST_AUTO_TEST_CASE(what_belongs_to_no_step_is_released_when_it_is_used) {
  recorded_set one(
      {edge_end_of(1, false, "verdict", {}, 1), edge_end_of(2, false, "step_table", {}, 1)});
  BOOST_REQUIRE(one.set.receive(packet_of(2, 0, table_of(2))));
  BOOST_REQUIRE(one.set.receive(packet_of(1, 0, verdict_of(1))));
  one.set.consumed_now();
  BOOST_TEST(one.take() == texts{"1:0 credit"}, by_element);
  one.set.consumed_now();
  BOOST_TEST(one.take() == texts{"2:0 credit"}, by_element);
  BOOST_CHECK_THROW(one.set.consumed_now(), defect);
}

BOOST_AUTO_TEST_CASE(duplicates_are_dropped_and_owe_no_credit) {
  recorded_set one({edge_end_of(1, false, "verdict", {}, 1)});
  BOOST_REQUIRE(one.set.receive(packet_of(1, 0, verdict_of(1))));
  const auto again = one.set.receive(packet_of(1, 0, verdict_of(1)));
  BOOST_REQUIRE(again);
  BOOST_TEST(!again->has_value());
  one.set.consumed_now();
  BOOST_TEST(one.take() == texts{"1:0 credit"}, by_element);
  BOOST_CHECK_THROW(one.set.consumed_now(), defect);
}

BOOST_AUTO_TEST_CASE(packets_of_foreign_edges_and_gaps_are_malformed_by_name) {
  recorded_set one({edge_end_of(1, false, "verdict", {}), edge_end_of(2, true, "proposal", {})});
  const auto error_of = [&](const packet_ref& packet) {
    const auto received = one.set.receive(packet);
    BOOST_REQUIRE(!received);
    BOOST_TEST((received.error().code == errc::malformed));
    return received.error().message;
  };
  BOOST_TEST(error_of(packet_of(7, 0, verdict_of(1))) ==
             "a message on edge 7, which does not end here");
  BOOST_TEST(error_of(packet_of(2, 0, verdict_of(1))) ==
             "a message on edge 2, which does not end here");
  BOOST_TEST(error_of(packet_of(1, 0, credit_of(1, 1))) ==
             "credit for edge 1, which does not leave here");
  BOOST_TEST(error_of(packet_of(1, 1, verdict_of(1))) ==
             "edge 'edge-1': sequence gap, expected 0, got 1");
  BOOST_TEST(error_of(packet_of(2, 0, credit_of(1, 1))).find("exceed the window") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_new_epoch_restarts_both_directions_and_forgets_what_was_held) {
  const std::vector<edge_end> ends{edge_end_of(1, false, "step_table", {}, 2),
                                   edge_end_of(2, true, "verdict", {}, 1)};
  recorded_set one(ends);
  const std::uint64_t bytes = flow::credit_bytes(verdict_of(1));
  BOOST_REQUIRE(one.set.receive(packet_of(1, 0, table_of(1))));
  one.set.send(verdict_of(1));
  one.set.send(verdict_of(2));  // waits
  one.take();
  const epoch_id next{1};
  one.set.bind(ends, next);
  BOOST_CHECK_THROW(one.set.consumed_now(), defect);  // nothing is held
  BOOST_TEST(one.set.waiting_edge("verdict") == nullptr);
  BOOST_CHECK_THROW(one.set.send(verdict_of(3)), defect);  // still of the old epoch
  one.set.send(verdict_of(3, next));
  BOOST_TEST(one.take() == texts{"2:0 verdict"}, by_element);  // the whole window again
  // What the old epoch left on its way is void: a table, and credit for its verdict.
  const auto late = one.set.receive(packet_of(1, 1, table_of(2)));
  BOOST_REQUIRE(late);
  BOOST_TEST(!late->has_value());
  BOOST_REQUIRE(one.set.receive(packet_of(2, 0, credit_of(1, bytes))));
  one.set.send(verdict_of(4, next));
  BOOST_TEST(one.take().empty());
  BOOST_REQUIRE(one.set.receive(packet_of(2, 0, credit_of(1, bytes, next))));
  BOOST_TEST(one.take() == texts{"2:1 verdict"}, by_element);
  one.set.consumed_step(step_id{1});  // held before the epoch: no credit
  BOOST_TEST(one.take().empty());
  flow::step_table table = table_of(3);
  table.epoch = next;
  const auto fresh = one.set.receive(packet_of(1, 0, table));
  BOOST_REQUIRE(fresh);
  BOOST_TEST(fresh->has_value());
  BOOST_CHECK_THROW(one.set.bind(ends, next), defect);
}

BOOST_AUTO_TEST_CASE(departures_are_traced_with_their_bytes_and_their_wait) {
  recorded_set one({edge_end_of(1, true, "verdict", {}, 1)}, 10);
  const std::uint64_t bytes = flow::credit_bytes(verdict_of(1));
  one.set.send(verdict_of(1));
  one.set.send(verdict_of(2));
  BOOST_REQUIRE(one.set.receive(packet_of(1, 0, credit_of(1, bytes))));
  const auto events = one.trace.take();
  BOOST_REQUIRE_EQUAL(events.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    BOOST_TEST((events[i].kind == trace_kind::message));
    BOOST_TEST(events[i].track == "edge-1");
    BOOST_TEST(events[i].step == i + 1);
    BOOST_TEST(events[i].bytes == bytes);
    BOOST_TEST(events[i].duration_us >= 0);
  }
  BOOST_TEST(events[0].duration_us == 0);
}

BOOST_AUTO_TEST_SUITE_END()
