// Goal: a consumer that stalls bounds its producers: nothing piles up, and nothing is lost. Method:
// one unit of a topology handles no message while requests keep coming; what waits anywhere is
// compared with the plan's windows; then the unit goes on and every answer must be local_engine's.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/sim/actors/simulation.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

const std::string sections =
    "limits: {rows_per_step: 4, requests: 3, context: 64, steps_in_flight: 4}\n";

}  // namespace

BOOST_AUTO_TEST_SUITE(stalls)

BOOST_DATA_TEST_CASE(a_stalled_unit_bounds_what_waits_and_loses_nothing,
                     boost::unit_test::data::make({"embedding", "engram", "encoder", "decoder",
                                                   "head"}) *
                         boost::unit_test::data::make({false, true}),
                     unit, small_windows) {
  const topology::plan plan = planned("two nodes", sections);
  simulation sim(plan, {.seed = 7, .small_windows = small_windows});
  const auto requests = random_requests(7, 12);
  std::vector<request_id> ids;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i == 2) sim.stall(unit);
    const auto given = sim.submit({requests[i]});
    BOOST_REQUIRE(given);
    ids.push_back(given->front());
    for (int action = 0; action < 60; ++action) sim.act();
  }
  sim.run();
  const std::size_t answered = sim.finished.size();
  BOOST_TEST(answered < requests.size());
  // What waits at its door, and at every other, is within the windows.
  for (const auto& [id, edge] : sim.edges())
    BOOST_TEST(edge.messages_out_max <= edge.contract.window_messages);
  BOOST_TEST(!sim.act());  // and so it stays

  sim.resume(unit);
  sim.run();
  const expected_answers expected = local_answers(requests, sim.limits());
  BOOST_TEST(sim.faults.empty(), (sim.faults.empty() ? "" : sim.faults[0].what.message));
  BOOST_TEST(sim.violations.empty(), (sim.violations.empty() ? "" : sim.violations[0]));
  BOOST_REQUIRE_EQUAL(sim.finished.size(), ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    BOOST_REQUIRE((sim.rows.at(ids[i]) == expected.rows[i]));
  BOOST_TEST(sim.credit_is_whole());
  BOOST_TEST(sim.pages_in_use() == 0U);
}

BOOST_AUTO_TEST_CASE(a_producer_sends_no_more_than_its_window_to_a_stalled_consumer) {
  const topology::plan plan = planned("two nodes", sections);
  simulation sim(plan, {.seed = 8, .small_windows = true});
  sim.stall("decoder");
  session::generation_request request;
  request.prompt.assign(40, 7);  // ten chunks, four steps in flight
  request.new_tokens_max = 1;
  BOOST_REQUIRE(sim.submit({request}));
  sim.run();
  for (const auto& [id, edge] : sim.edges())
    if (edge.kind == topology::edge_kind::activation) {
      BOOST_TEST(edge.messages == 1U);
      BOOST_TEST(edge.messages_out == 1);
    }
  sim.resume("decoder");
  sim.run();
  BOOST_TEST(sim.finished.size() == 1U);
  for (const auto& [id, edge] : sim.edges()) BOOST_TEST(edge.messages_out_max <= 1);
}

BOOST_AUTO_TEST_SUITE_END()
