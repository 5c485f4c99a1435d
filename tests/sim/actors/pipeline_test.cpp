// Goal: whatever the cut and the order of events, actors give the bits of the engine without
// actors, and nothing is left over. Method: seeded random interleavings of a whole topology
// (simulation.hpp) against local_engine: rows, usage, verdicts and taps; at the end every edge has
// its whole window again and every page is free. A seed is a run.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/sim/actors/run_checks.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

const std::string limits = "limits: {rows_per_step: 8, requests: 3, context: 64, ";

void check_run(const simulation& sim, const std::vector<request_id>& ids,
               const expected_answers& expected) {
  check_answers(sim, ids, expected);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    BOOST_REQUIRE_EQUAL(sim.finished.at(ids[i]).prompt_tokens, expected.used[i].prompt_tokens);
    BOOST_REQUIRE_EQUAL(sim.finished.at(ids[i]).completion_tokens,
                        expected.used[i].completion_tokens);
  }
  check_nothing_left(sim);
  BOOST_TEST(sim.fault_counts().dropped == 0U);
}

/// Every stage gets the same verdicts in the same order.
std::vector<flow::verdict> verdicts_of(const simulation& sim) {
  std::vector<flow::verdict> out;
  bool first = true;
  for (const auto& [id, edge] : sim.edges()) {
    if (edge.kind != topology::edge_kind::verdict) continue;
    if (std::exchange(first, false)) out = edge.verdicts;
    BOOST_REQUIRE_EQUAL(edge.verdicts.size(), out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      BOOST_REQUIRE((edge.verdicts[i].step == out[i].step));
      BOOST_REQUIRE((edge.verdicts[i].commitments == out[i].commitments));
    }
  }
  return out;
}

void run_and_compare(const std::string& topology, const std::string& steps, std::uint64_t seed,
                     bool small_windows) {
  const topology::plan plan = planned(topology, limits + steps);
  simulation sim(plan, {.seed = seed, .small_windows = small_windows});
  const auto requests = random_requests(seed, 5);
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  sim.run();
  check_run(sim, *ids, local_answers(requests, sim.limits()));
  verdicts_of(sim);
}

const auto topologies = boost::unit_test::data::make(placements_of(topology_names()));

}  // namespace

BOOST_AUTO_TEST_SUITE(pipeline)

BOOST_DATA_TEST_CASE(any_interleaving_gives_the_local_answers,
                     topologies* boost::unit_test::data::xrange(1, 1 + seeds_count(15)), topology,
                     seed) {
  run_and_compare(topology, "steps_in_flight: 3}\n", static_cast<std::uint64_t>(seed), false);
}

BOOST_DATA_TEST_CASE(windows_of_one_message_give_the_local_answers,
                     topologies* boost::unit_test::data::xrange(100, 100 + seeds_count(8)),
                     topology, seed) {
  run_and_compare(topology, "steps_in_flight: 4}\n", static_cast<std::uint64_t>(seed), true);
}

BOOST_DATA_TEST_CASE(with_one_step_at_a_time_verdicts_are_the_local_ones,
                     topologies* boost::unit_test::data::xrange(200, 200 + seeds_count(4)),
                     topology, seed) {
  const topology::plan plan = planned(topology, limits + "steps_in_flight: 1}\n");
  simulation sim(plan, {.seed = static_cast<std::uint64_t>(seed)});
  const auto requests = random_requests(static_cast<std::uint64_t>(seed), 4);
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  sim.run();
  const expected_answers expected = local_answers(requests, sim.limits());
  check_run(sim, *ids, expected);
  const auto verdicts = verdicts_of(sim);
  BOOST_REQUIRE_EQUAL(verdicts.size(), expected.verdicts.size());
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    BOOST_REQUIRE((verdicts[i].step == expected.verdicts[i].step));
    BOOST_REQUIRE((verdicts[i].commitments == expected.verdicts[i].commitments));
  }
}

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_DATA_TEST_CASE(sixteen_requests_at_a_time_give_the_local_answers, topologies, topology) {
  const topology::plan plan = planned(
      topology,
      "limits: {rows_per_step: 24, requests: 16, context: 64, prefill_rows: 5, steps_in_flight: "
      "3}\n");
  simulation sim(plan, {.seed = 500});
  const auto requests = random_requests(500, 24);
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  sim.run();
  check_run(sim, *ids, local_answers(requests, sim.limits()));
}

BOOST_DATA_TEST_CASE(requests_that_arrive_meanwhile_get_the_local_answers,
                     topologies* boost::unit_test::data::xrange(300, 300 + seeds_count(4)),
                     topology, seed) {
  const topology::plan plan = planned(topology, limits + "steps_in_flight: 3}\n");
  simulation sim(plan, {.seed = static_cast<std::uint64_t>(seed)});
  const auto requests = random_requests(static_cast<std::uint64_t>(seed), 6);
  std::vector<request_id> ids;
  for (const session::generation_request& request : requests) {
    const auto given = sim.submit({request});
    BOOST_REQUIRE(given);
    ids.push_back(given->front());
    for (int action = 0; action < 150; ++action) sim.act();
  }
  sim.run();
  check_run(sim, ids, local_answers(requests, sim.limits()));
}

BOOST_DATA_TEST_CASE(taps_arrive_as_the_local_ones, topologies, topology) {
  const topology::plan plan = planned(topology, limits + "steps_in_flight: 1}\n");
  simulation sim(plan, {.seed = 400});
  auto requests = random_requests(400, 2);
  // More of a stage than its edge has credit for.
  requests[0].taps = {"L*.attn.in", "L*.attn.out", "L*.ffn.in", "L*.ffn.out", "final.normed"};
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  sim.run();
  const expected_answers expected = local_answers(requests, sim.limits());
  check_run(sim, *ids, expected);
  BOOST_REQUIRE_EQUAL(sim.taps.size(), expected.taps.size());
  BOOST_TEST(sim.taps.size() > 4U * 12);
  BOOST_TEST(sim.taps_before_finish.at(ids->front()) == sim.taps.size());
  for (const flow::tap& tap : expected.taps) {
    const auto found = std::ranges::find_if(sim.taps, [&](const flow::tap& other) {
      return other.step == tap.step && other.name == tap.name;
    });
    BOOST_REQUIRE(found != sim.taps.end());
    const auto made = flow::bytes_of(found->payload), wanted = flow::bytes_of(tap.payload);
    BOOST_TEST((found->shape == tap.shape));
    BOOST_TEST(std::equal(made.begin(), made.end(), wanted.begin(), wanted.end()));
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_submitted_is_refused_by_name_and_starts_nothing) {
  const topology::plan plan = planned("two nodes", limits + "steps_in_flight: 3}\n");
  simulation sim(plan, {.seed = 1});
  auto requests = random_requests(1, 2);
  requests[1].prompt = {};
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(!ids);
  BOOST_TEST((ids.error().code == errc::invalid_argument));
  BOOST_TEST(ids.error().message == "request 2: the prompt is empty; give at least one token");
  BOOST_TEST(!sim.act());
}

BOOST_AUTO_TEST_SUITE_END()
