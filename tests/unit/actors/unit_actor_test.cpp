// Goal: an actor passes messages, faults and credit of its unit, and adds nothing. Method: units
// made for the test under CAF's test scheduler.
#include "actors/unit_actor.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/base/check.hpp"
#include "tests/unit/actors/test_system.hpp"

using namespace cedar;
using namespace cedar::actors;
using namespace cedar::test;

namespace {

/// Answers a table with an activation, that of step 9 with two, the second after it said that it
/// has more to do; what step 2 does in the first epoch is the test's choice.
class made_unit final : public stage::unit {
 public:
  enum class trouble { none, error, defect, unknown };

  explicit made_unit(trouble at_step_2) : trouble_(at_step_2) {}

  result<stage::unit_output> take(flow::message message) override {
    stage::unit_output out;
    const auto* table = std::get_if<flow::step_table>(&message);
    if (table == nullptr) return out;
    if (table->step == step_id{2}) {
      if (trouble_ == trouble::error) return fail(errc::capacity, "no room");
      CEDAR_REQUIRE(trouble_ != trouble::defect, "two owners of one page");
      if (trouble_ == trouble::unknown) out.messages.emplace_back(flow::proposal{});
    }
    flow::row_block block = block_of(table->step.value, flow::row_kind::activation);
    block.epoch = table->epoch;
    out.messages.emplace_back(block);
    out.more = table->step == step_id{9};
    if (out.more)
      rest_ = std::move(block);
    else
      out.work.push_back({table->step, 1, 1, {}, {}, {}});
    return out;
  }
  result<stage::unit_output> go_on() override {
    stage::unit_output out;
    out.work.push_back({rest_.step, 0, 0, {}, {}, {}});
    out.messages.emplace_back(std::move(rest_));
    return out;
  }
  void begin_epoch() override {
    if (++epochs_ > 1) trouble_ = trouble::none;
  }

 private:
  trouble trouble_;
  flow::row_block rest_;
  int epochs_ = 0;
};

struct bound_unit {
  explicit bound_unit(made_unit::trouble at_step_2, std::size_t trace_events = 0)
      : trace(trace_events) {
    unit = actors.keep(spawn_unit(actors.system(), {"maker", std::make_unique<made_unit>(at_step_2),
                                                    false, actors.fault_recorder(faults), &trace}));
    BOOST_REQUIRE(bind(0));
  }

  result<bound_atom> bind(std::uint32_t epoch) {
    return actors.ask<bound_atom>(
        unit, bind_atom::value,
        edge_ends_ref(std::make_shared<const std::vector<edge_end>>(
            std::vector{edge_end_of(1, false, "step_table", actors.packet_recorder(credits), 1),
                        edge_end_of(2, false, "verdict", actors.packet_recorder(credits), 1),
                        edge_end_of(3, true, "activation", actors.packet_recorder(rows), 3)})),
        epoch);
  }

  void send(const packet_ref& packet) {
    caf::anon_send(unit, packet);
    actors.run();
  }

  trace_recorder trace;
  std::vector<fault> faults;
  std::vector<flow::stamped_message> credits, rows;
  test_system actors;
  unit_actor unit;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(unit_actors)

BOOST_AUTO_TEST_CASE(outputs_leave_and_the_credit_of_used_inputs_returns) {
  bound_unit one(made_unit::trouble::none, 10);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    one.send(packet_of(1, step - 1, table_of(step)));
    BOOST_TEST(one.rows.size() == step);
    BOOST_TEST(one.credits.size() == step);
  }
  one.send(packet_of(2, 0, flow::verdict{step_id{1}, {}, {}}));  // used at once
  BOOST_REQUIRE_EQUAL(one.credits.size(), 4U);
  BOOST_TEST((one.credits[3].head.edge == edge_id{2}));
  BOOST_TEST(one.faults.empty());
  std::size_t computed = 0;
  for (const trace_event& event : one.trace.take())
    if (event.kind == trace_kind::compute) {
      BOOST_TEST(event.track == "maker");
      BOOST_TEST(event.step == ++computed);
    }
  BOOST_TEST(computed == 3U);
}

BOOST_AUTO_TEST_CASE(a_unit_with_more_to_do_goes_on_when_its_messages_have_left) {
  bound_unit one(made_unit::trouble::none);
  one.send(packet_of(1, 0, table_of(9)));
  BOOST_REQUIRE_EQUAL(one.rows.size(), 2U);
  BOOST_TEST(one.rows[0].head.sequence == 0U);
  BOOST_TEST(one.rows[1].head.sequence == 1U);
  BOOST_TEST(one.credits.size() == 1U);  // the step's, at its end
}

BOOST_AUTO_TEST_CASE(an_error_of_a_step_is_reported_once_with_the_units_name) {
  bound_unit one(made_unit::trouble::error);
  for (std::uint64_t step = 1; step <= 2; ++step) one.send(packet_of(1, step - 1, table_of(step)));
  BOOST_REQUIRE_EQUAL(one.faults.size(), 1U);
  BOOST_TEST(one.faults[0].where == "maker");
  BOOST_TEST((one.faults[0].what.code == errc::capacity));
  BOOST_TEST(one.faults[0].what.message == "no room");
  one.send(packet_of(1, 7, table_of(3)));  // what follows an error is not judged
  BOOST_TEST(one.faults.size() == 1U);
  BOOST_TEST(one.rows.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_new_epoch_ends_a_failure_and_voids_what_is_late) {
  bound_unit one(made_unit::trouble::error);
  for (std::uint64_t step = 1; step <= 2; ++step) one.send(packet_of(1, step - 1, table_of(step)));
  BOOST_REQUIRE_EQUAL(one.faults.size(), 1U);
  BOOST_TEST((one.faults[0].epoch == epoch_id{}));
  BOOST_REQUIRE(one.bind(4));
  one.send(packet_of(1, 2, table_of(2)));  // of the old epoch
  BOOST_TEST(one.rows.size() == 1U);
  flow::step_table table = table_of(2);
  table.epoch = epoch_id{4};
  one.send(packet_of(1, 0, table));
  BOOST_TEST_REQUIRE(one.rows.size() == 2U);
  BOOST_TEST((flow::epoch_of(one.rows.back().body) == epoch_id{4}));
  one.send(packet_of(1, 7, table));
  BOOST_TEST_REQUIRE(one.faults.size() == 2U);
  BOOST_TEST((one.faults[1].epoch == epoch_id{4}));
}

BOOST_AUTO_TEST_CASE(an_error_of_an_edge_is_reported_too) {
  bound_unit one(made_unit::trouble::none);
  one.send(packet_of(1, 1, table_of(1)));
  BOOST_REQUIRE_EQUAL(one.faults.size(), 1U);
  BOOST_TEST(one.faults[0].what.message == "edge 'edge-1': sequence gap, expected 0, got 1");
}

BOOST_AUTO_TEST_CASE(a_defect_of_the_unit_ends_the_actor_and_keeps_its_text) {
  bound_unit one(made_unit::trouble::defect);
  for (std::uint64_t step = 1; step <= 2; ++step) one.send(packet_of(1, step - 1, table_of(step)));
  BOOST_REQUIRE_EQUAL(one.faults.size(), 1U);
  BOOST_TEST(one.faults[0].where == "maker");
  BOOST_TEST((one.faults[0].what.code == errc::defect));
  BOOST_TEST(one.faults[0].what.message.find("two owners of one page") != std::string::npos);
  const auto gone = one.bind(1);
  BOOST_REQUIRE(!gone);
  BOOST_TEST((gone.error().code == errc::peer_lost));
}

BOOST_AUTO_TEST_CASE(a_message_that_no_edge_carries_is_such_a_defect) {
  bound_unit one(made_unit::trouble::unknown);
  for (std::uint64_t step = 1; step <= 2; ++step) one.send(packet_of(1, step - 1, table_of(step)));
  BOOST_REQUIRE_EQUAL(one.faults.size(), 1U);
  BOOST_TEST((one.faults[0].what.code == errc::defect));
  BOOST_TEST(one.faults[0].what.message.find("no edge carries proposal") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
