// Goal: requests that take KV from each other get the answers that they get with KV for all, no
// stage runs out of pages, and nothing is left over. Method: seeded random interleavings of a whole
// topology (simulation.hpp) whose KV is enough for fewer requests than it runs, against
// local_engine.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <limits>
#include <random>

#include "tests/sim/actors/run_checks.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

/// Prompts of nearly one granule (128 positions) whose answers need a second one.
std::vector<session::generation_request> growing_requests(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<session::generation_request> out(count);
  for (session::generation_request& one : out) {
    one.prompt.resize(122 + random() % 6);
    for (token_id& id : one.prompt) id = static_cast<token_id>(3 + random() % 500);
    one.new_tokens_max = 9 + static_cast<std::uint32_t>(random() % 4);
    one.ignore_eos = true;
    one.want_logits = random() % 2 == 0;
    one.mode = random() % 2 == 0 ? session::prefill_mode::exact : session::prefill_mode::bounded;
    if (random() % 2 == 0) one.sampling = random_sampling(random());
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(preemption)

BOOST_DATA_TEST_CASE(takes_kv_from_the_youngest_and_changes_no_answer,
                     boost::unit_test::data::make(placements_of(topology_names())) *
                         boost::unit_test::data::xrange(1, 1 + seeds_count(2)),
                     topology, seed) {
  const topology::plan plan =
      planned(topology,
              "limits: {rows_per_step: 64, requests: 4, context: 256, kv_positions: 384, "
              "prefill_rows: 40, steps_in_flight: 3}\n");
  simulation sim(plan, {.seed = static_cast<std::uint64_t>(seed)});
  const auto requests = growing_requests(static_cast<std::uint64_t>(seed), 5);
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  sim.run();
  session::scheduler_limits plenty = sim.limits();
  plenty.kv_granules = std::numeric_limits<std::uint64_t>::max();
  const expected_answers expected = local_answers(requests, plenty);
  check_answers(sim, *ids, expected);
  check_nothing_left(sim);
  std::uint32_t preemptions = 0;
  for (std::size_t i = 0; i < ids->size(); ++i) {
    const session::usage& used = sim.finished.at((*ids)[i]);
    preemptions += used.preemptions;
    BOOST_TEST((used.encoder_rows > expected.used[i].encoder_rows) == (used.preemptions > 0));
  }
  // Three run at once and each needs a second granule: somebody must give way.
  BOOST_TEST(preemptions > 0U);
}

BOOST_AUTO_TEST_SUITE_END()
