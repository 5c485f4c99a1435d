#include "tests/sim/actors/run_checks.hpp"

#include <boost/test/unit_test.hpp>
#include <map>
#include <random>

namespace cedar::test {

void check_nothing_left(const simulation& sim) {
  BOOST_TEST(sim.faults.empty(), (sim.faults.empty() ? "" : sim.faults[0].what.message));
  BOOST_TEST(sim.given_up_for.empty(),
             (sim.given_up_for.empty() ? "" : sim.given_up_for[0].what.message));
  BOOST_TEST(sim.violations.empty(), (sim.violations.empty() ? "" : sim.violations[0]));
  BOOST_TEST(sim.credit_is_whole());
  BOOST_TEST(sim.pages_in_use() == 0U);
  BOOST_TEST(sim.sequences() == 0U);
  BOOST_TEST(sim.image_rows() == 0U);
}

void check_answers(const simulation& sim, const std::vector<request_id>& ids,
                   const expected_answers& expected) {
  BOOST_REQUIRE_EQUAL(sim.finished.size(), ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    BOOST_REQUIRE((sim.rows.at(ids[i]) == expected.rows[i]));
}

void run_with_a_laggard(simulation& sim, const std::string& unit) {
  for (int round = 0; round < 40; ++round) {
    sim.stall(unit);
    for (int action = 0; action < 400 && sim.act(); ++action) continue;
    sim.resume(unit);
    for (int action = 0; action < 40 && sim.act(); ++action) continue;
  }
  sim.run();
}

void run_and_cancel(simulation& sim, const std::vector<request_id>& ids, std::uint64_t seed,
                    std::size_t actions_max) {
  std::mt19937_64 random(seed);
  std::map<std::size_t, std::size_t> cancelled_after;  // by request: actions
  for (std::size_t i = 0; i < ids.size(); i += 2) cancelled_after[i] = random() % actions_max;
  for (std::size_t actions = 0; sim.act(); ++actions)
    for (const auto& [request, after] : cancelled_after)
      if (after == actions) sim.cancel(ids[request]);
  for (const auto& [request, after] : cancelled_after) sim.cancel(ids[request]);
  sim.run();
}

}  // namespace cedar::test
