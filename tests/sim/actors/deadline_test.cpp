// Goal: a message that never comes is noticed, by its step's deadline or by the gap that it leaves,
// and the text says where. Method: whole topologies under CAF's test clock; one message of one kind
// of edge is lost, and time passes only when the test says so.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/sim/actors/simulation.hpp"

using namespace cedar;
using namespace cedar::test;
using namespace std::chrono_literals;
using topology::edge_kind;

namespace {

std::string sections(int steps_in_flight) {
  return "limits: {rows_per_step: 8, requests: 3, context: 64, steps_in_flight: " +
         std::to_string(steps_in_flight) + "}\ndeadlines_ms: {step: 700}\n";
}

/// One request of `steps` steps: a prompt of one chunk, then one row a step.
session::generation_request request_of(std::uint32_t steps) {
  session::generation_request out;
  out.prompt = {10, 20, 30, 40};
  out.new_tokens_max = steps;
  out.ignore_eos = true;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(deadlines)

BOOST_DATA_TEST_CASE(a_lost_message_ends_its_step_by_the_deadline_and_names_it,
                     boost::unit_test::data::make({edge_kind::step_table, edge_kind::embedded,
                                                   edge_kind::engram_rows, edge_kind::activation,
                                                   edge_kind::head_input, edge_kind::proposal}) *
                         boost::unit_test::data::make(placements_of(topology_names())),
                     kind, topology) {
  const topology::plan plan = planned(topology, sections(1));
  const bool in_parts = kind == edge_kind::engram_rows && topology == "shards";
  const edge_kind lost = in_parts ? edge_kind::engram_slots : kind;
  simulation sim(plan, {.seed = 1, .lost = std::pair(lost, 2U)});
  const auto ids = sim.submit({request_of(6)});
  BOOST_REQUIRE(ids);
  sim.run();
  BOOST_TEST(sim.rows[ids->front()].size() == 2U);  // the third step hangs
  BOOST_TEST(sim.given_up_for.empty());
  sim.advance(650ms);
  sim.run();
  BOOST_TEST(sim.given_up_for.empty());
  sim.advance(50ms);
  sim.run();
  BOOST_REQUIRE_EQUAL(sim.given_up_for.size(), 1U);
  BOOST_TEST(sim.given_up_for[0].where == "step 3");
  BOOST_TEST((sim.given_up_for[0].what.code == errc::timeout));
  BOOST_TEST(sim.given_up_for[0].what.message == "no proposal within 700 ms (deadlines_ms.step)");
  BOOST_TEST((sim.given_up == *ids));
  BOOST_TEST(sim.rows[ids->front()].size() == 2U);
}

BOOST_DATA_TEST_CASE(with_more_steps_on_their_way_a_gap_names_the_edge,
                     boost::unit_test::data::make(placements_of(topology_names())), topology) {
  // Chunks of a long prompt follow each other; the second activation is lost.
  const topology::plan plan = planned(topology, sections(3));
  simulation sim(plan, {.seed = 2, .lost = std::pair(edge_kind::activation, 1U)});
  session::generation_request request = request_of(4);
  request.prompt.assign(40, 7);
  const auto ids = sim.submit({request});
  BOOST_REQUIRE(ids);
  sim.run();
  BOOST_REQUIRE_EQUAL(sim.given_up_for.size(), 1U);
  const std::string& text = sim.given_up_for[0].what.message;
  BOOST_TEST(text.find(" activation': sequence gap, expected 1, got 2") != std::string::npos, text);
  BOOST_TEST((sim.given_up == *ids));
  BOOST_TEST(sim.rows[ids->front()].empty());
}

BOOST_DATA_TEST_CASE(a_lost_verdict_leaves_a_gap_before_the_next_one,
                     boost::unit_test::data::make(placements_of(topology_names())), topology) {
  const topology::plan plan = planned(topology, sections(2));
  simulation sim(plan, {.seed = 3, .lost = std::pair(edge_kind::verdict, 1U)});
  BOOST_REQUIRE(sim.submit({request_of(5)}));
  sim.run();
  BOOST_REQUIRE_EQUAL(sim.given_up_for.size(), 1U);
  const std::string& text = sim.given_up_for[0].what.message;
  BOOST_TEST(text.find(" verdict': sequence gap, expected 1, got 2") != std::string::npos, text);
}

BOOST_DATA_TEST_CASE(a_verdict_without_credit_is_late_by_name_though_no_step_is_under_way,
                     boost::unit_test::data::make(placements_of(topology_names())), topology) {
  // In a window of one message the next verdict waits for the lost one's credit.
  const topology::plan plan = planned(topology, sections(1));
  simulation sim(plan, {.seed = 3, .lost = std::pair(edge_kind::verdict, 1U)});
  const auto ids = sim.submit({request_of(5)});
  BOOST_REQUIRE(ids);
  sim.run();
  BOOST_TEST(sim.rows[ids->front()].size() == 3U);
  sim.advance(650ms);
  sim.run();
  BOOST_TEST(sim.given_up_for.empty());
  sim.advance(50ms);
  sim.run();
  BOOST_REQUIRE_EQUAL(sim.given_up_for.size(), 1U);
  const actors::fault& why = sim.given_up_for[0];
  BOOST_TEST(why.where.find("edge 'scheduler -> ") == 0U, why.where);
  BOOST_TEST(why.where.find(" verdict'") != std::string::npos, why.where);
  BOOST_TEST((why.what.code == errc::timeout));
  BOOST_TEST(why.what.message == "no credit within 700 ms (deadlines_ms.step)");
  BOOST_TEST((sim.given_up == *ids));
}

BOOST_DATA_TEST_CASE(what_is_asked_or_answered_and_is_lost_ends_the_step_by_its_deadline,
                     boost::unit_test::data::make(
                         {edge_kind::expert_rows, edge_kind::expert_outputs, edge_kind::index_query,
                          edge_kind::pool_query, edge_kind::index_choice, edge_kind::pool_choice}),
                     kind) {
  const topology::plan plan = planned("experts", sections(1));
  simulation sim(plan, {.seed = 1, .lost = std::pair(kind, 2U)});
  const auto ids = sim.submit({request_of(8)});
  BOOST_REQUIRE(ids);
  sim.run();
  BOOST_TEST(sim.given_up_for.empty());
  sim.advance(700ms);
  sim.run();
  BOOST_REQUIRE_EQUAL(sim.given_up_for.size(), 1U);
  BOOST_TEST(sim.given_up_for[0].where.find("step ") == 0U);
  BOOST_TEST((sim.given_up_for[0].what.code == errc::timeout));
  BOOST_TEST((sim.given_up == *ids));
}

BOOST_AUTO_TEST_CASE(steps_that_keep_their_time_never_hit_the_deadline) {
  const topology::plan plan = planned("two nodes", sections(1));
  simulation sim(plan, {.seed = 4});
  const auto ids = sim.submit({request_of(8)});
  BOOST_REQUIRE(ids);
  std::size_t rows = 0;
  for (int guard = 0; guard < 100000 && sim.act(); ++guard)
    if (sim.rows[ids->front()].size() > rows) {
      ++rows;
      sim.advance(600ms);  // a step takes most of its time, the answer many times as much
    }
  BOOST_TEST(sim.given_up_for.empty());
  BOOST_TEST(sim.finished.size() == 1U);
  sim.advance(10s);  // and nothing is late when nothing is on its way
  sim.run();
  BOOST_TEST(sim.given_up_for.empty());
  BOOST_TEST(sim.faults.empty());
}

BOOST_AUTO_TEST_SUITE_END()
