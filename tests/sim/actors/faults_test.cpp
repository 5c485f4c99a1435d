// Goal: whatever the network does to frames, nobody ever gets a wrong row; a request ends with the
// right answer, or with a fault that has a name. Method: whole topologies (simulation.hpp) over
// ports that drop, double, swap, corrupt and delay frames by seed; every row is compared with
// local_engine's. A seed is a run; one that failed becomes a case of its own.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/sim/actors/simulation.hpp"

using namespace cedar;
using namespace cedar::test;
using namespace std::chrono_literals;

namespace {

const std::string sections =
    "limits: {rows_per_step: 8, requests: 3, context: 64, steps_in_flight: 3}\n"
    "deadlines_ms: {step: 700}\n";

/// What has happened so far is a beginning of the right answers.
void check_rows(const simulation& sim, const std::vector<request_id>& ids,
                const expected_answers& expected) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto found = sim.rows.find(ids[i]);
    if (found == sim.rows.end()) continue;
    BOOST_REQUIRE_LE(found->second.size(), expected.rows[i].size());
    BOOST_REQUIRE(std::equal(found->second.begin(), found->second.end(), expected.rows[i].begin()));
    if (sim.finished.contains(ids[i]))
      BOOST_REQUIRE_EQUAL(found->second.size(), expected.rows[i].size());
  }
}

struct outcome {
  bool answered = false;
  transport::fault_counts counts;
};

/// Runs requests over misbehaving ports to their end, whichever it is, and checks it.
outcome run_over(const std::string& topology, std::uint64_t seed,
                 const transport::fault_plan& misbehaviour) {
  const topology::plan plan = planned(topology, sections);
  simulation sim(plan, {.seed = seed, .faults = misbehaviour});
  const auto requests = random_requests(seed, 4);
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  sim.run();
  if (sim.finished.size() < ids->size() && sim.given_up_for.empty()) {
    sim.advance(plan.deadlines().step);
    sim.run();
  }
  BOOST_TEST(sim.violations.empty(), (sim.violations.empty() ? "" : sim.violations[0]));
  check_rows(sim, *ids, local_answers(requests, sim.limits()));
  BOOST_REQUIRE_EQUAL(sim.finished.size() + sim.given_up.size(), ids->size());
  for (const request_id id : sim.given_up) BOOST_REQUIRE(!sim.finished.contains(id));
  BOOST_REQUIRE_LE(sim.given_up_for.size(), 1U);
  if (sim.finished.size() < ids->size()) {
    BOOST_REQUIRE_EQUAL(sim.given_up_for.size(), 1U);
    const actors::fault& why = sim.given_up_for[0];
    BOOST_TEST_MESSAGE("seed " << seed << ": " << why.where << ": " << why.what.message);
    BOOST_REQUIRE(!why.where.empty());
    BOOST_REQUIRE(!why.what.message.empty());
    const auto late = sim.submit(requests);
    BOOST_REQUIRE(!late);
    BOOST_REQUIRE(late.error().message.find(why.what.message) != std::string::npos);
  }
  return {sim.finished.size() == ids->size() && sim.given_up_for.empty(), sim.fault_counts()};
}

struct kind_of_fault {
  const char* name;
  transport::fault_plan plan;

  friend std::ostream& operator<<(std::ostream& out, const kind_of_fault& one) {
    return out << one.name;
  }
};

const std::vector<kind_of_fault> kinds{
    {"drop", {.drop = 0.02}},
    {"reorder", {.reorder = 0.02}},
    {"corrupt", {.corrupt = 0.02}},
    {"delay", {.delay = 0.02, .delay_max = 1ms}},
    {"everything",
     {.drop = 0.004,
      .duplicate = 0.1,
      .reorder = 0.004,
      .corrupt = 0.004,
      .delay = 0.01,
      .delay_max = 1ms}},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(faults)

BOOST_DATA_TEST_CASE(doubled_frames_change_nothing,
                     boost::unit_test::data::xrange(1, 1 + seeds_count(8)), seed) {
  for (const std::string topology : {"two nodes", "three nodes"}) {
    const outcome ended = run_over(topology, static_cast<std::uint64_t>(seed), {.duplicate = 0.4});
    BOOST_TEST(ended.answered);
    BOOST_TEST(ended.counts.duplicated > 10U);
  }
}

BOOST_DATA_TEST_CASE(a_fault_has_a_name_and_no_row_is_wrong, boost::unit_test::data::make(kinds),
                     kind) {
  constexpr int seeds = 16;
  int answered = 0, failed = 0;
  for (int seed = 1; seed <= seeds_count(seeds); ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      const std::string& topology = topology_names[seed % 2 == 0 ? 1 : 2];
      const outcome ended = run_over(topology, static_cast<std::uint64_t>(seed), kind.plan);
      ++(ended.answered ? answered : failed);
    }
  }
  if (answered + failed < seeds) return;
  // Runs of both kinds, or the case shows nothing.
  BOOST_TEST(answered > 0);
  BOOST_TEST(failed > 0);
}

BOOST_AUTO_TEST_CASE(a_seed_is_a_run) {
  const auto run = [] {
    const topology::plan plan = planned("three nodes", sections);
    simulation sim(plan, {.seed = 5, .faults = {.duplicate = 0.1, .corrupt = 0.01}});
    BOOST_REQUIRE(sim.submit(random_requests(5, 4)));
    std::size_t actions = 0;
    while (sim.act()) ++actions;
    return std::tuple(actions, sim.fault_counts().sent, sim.faults.size(), sim.rows.size(),
                      sim.faults.empty() ? std::string{} : sim.faults[0].what.message);
  };
  BOOST_TEST((run() == run()));
}

BOOST_AUTO_TEST_SUITE_END()
