// Goal: a request that is cancelled at any moment gives everything back, everywhere, and changes no
// other answer. Method: seeded random interleavings of a whole topology (simulation.hpp), also with
// steps that wait for gathered entries, in which some requests are cancelled between two actions.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/sim/actors/run_checks.hpp"

using namespace cedar;
using namespace cedar::test;

BOOST_AUTO_TEST_SUITE(cancel)

BOOST_DATA_TEST_CASE(frees_everything_and_changes_no_other_answer,
                     boost::unit_test::data::make(placements_of(topology_names())) *
                         boost::unit_test::data::xrange(1, 1 + seeds_count(12)),
                     topology, seed) {
  const topology::plan plan = planned(
      topology, "limits: {rows_per_step: 8, requests: 3, context: 64, steps_in_flight: 3}\n");
  simulation sim(plan, {.seed = static_cast<std::uint64_t>(seed)});
  const auto requests = random_requests(static_cast<std::uint64_t>(seed), 6);
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  run_and_cancel(sim, *ids, static_cast<std::uint64_t>(seed), 400);

  check_nothing_left(sim);
  const expected_answers expected = local_answers(requests, sim.limits());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto& rows = sim.rows[(*ids)[i]];
    if (i % 2 != 0) {
      BOOST_REQUIRE(sim.finished.contains((*ids)[i]));
      BOOST_REQUIRE((rows == expected.rows[i]));
      continue;
    }
    // What was said before is a beginning of the whole answer.
    BOOST_REQUIRE_LE(rows.size(), expected.rows[i].size());
    for (std::size_t row = 0; row < rows.size(); ++row)
      BOOST_REQUIRE((rows[row] == expected.rows[i][row]));
  }
}

BOOST_AUTO_TEST_SUITE_END()
