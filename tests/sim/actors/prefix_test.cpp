// Goal: through actors, requests that begin with what earlier ones left get the bits of the engine
// without actors, whatever the cut and the order of events, also after a node was lost and with it
// every prefix. Method: growing turns in waves, as seeded interleavings (simulation.hpp).
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/sim/actors/simulation.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

const std::string sections =
    "limits: {rows_per_step: 24, requests: 3, context: 160, steps_in_flight: 3, prefix_positions: "
    "1280}\n";

/// Three chats, two in mode bounded: of every turn's answer the ids are those that are fed.
std::vector<request_wave> turns(std::uint64_t seed) {
  request_wave chats = random_requests(seed, 3);
  std::vector<request_wave> out;
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < chats.size(); ++i) {
      session::generation_request& chat = chats[i];
      const auto more = random_requests(seed + 10 + i + static_cast<std::uint64_t>(turn), 2);
      chat.prompt.insert(chat.prompt.end(), chat.forced.begin(), chat.forced.end());
      chat.prompt.insert(chat.prompt.end(), more[0].prompt.begin(), more[0].prompt.end());
      chat.forced = {more[1].prompt.front(), 17, 4};
      while (turn == 0 && chat.prompt.size() < 20)
        chat.prompt.push_back(chat.prompt.back() % 400 + 9);
      chat.mode = i == 0 ? session::prefill_mode::halo : session::prefill_mode::bounded;
      chat.sampling.repetition_penalty = 1;
      chat.sampling.frequency_penalty = 0;
      chat.want_logits = true;
    }
    out.push_back(chats);
  }
  return out;
}

void check_wave(const simulation& sim, const std::vector<request_id>& ids,
                const expected_answers& expected, std::size_t first) {
  BOOST_TEST(sim.violations.empty(), (sim.violations.empty() ? "" : sim.violations[0]));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    BOOST_REQUIRE((sim.rows.at(ids[i]) == expected.rows[first + i]));
    const session::usage& used = sim.finished.at(ids[i]);
    BOOST_REQUIRE_EQUAL(used.cached_tokens, expected.used[first + i].cached_tokens);
    BOOST_REQUIRE_EQUAL(used.encoder_rows, expected.used[first + i].encoder_rows);
  }
}

const auto topologies = boost::unit_test::data::make(placements_of(topology_names()));

}  // namespace

BOOST_AUTO_TEST_SUITE(prefix_store)

BOOST_DATA_TEST_CASE(growing_turns_get_the_local_answers,
                     topologies* boost::unit_test::data::xrange(1, 1 + seeds_count(4)), topology,
                     seed) {
  const topology::plan plan = planned(topology, sections);
  simulation sim(plan, {.seed = static_cast<std::uint64_t>(seed)});
  const auto waves = turns(static_cast<std::uint64_t>(seed));
  const expected_answers expected = local_answers(waves, sim.limits());
  std::uint32_t cached = 0;
  for (std::size_t wave = 0; wave < waves.size(); ++wave) {
    const auto ids = sim.submit(waves[wave]);
    BOOST_REQUIRE(ids);
    sim.run();
    BOOST_TEST(sim.faults.empty(), (sim.faults.empty() ? "" : sim.faults[0].what.message));
    check_wave(sim, *ids, expected, 3 * wave);
    for (const request_id id : *ids) cached += sim.finished.at(id).cached_tokens;
  }
  BOOST_TEST(cached > 0U);
  BOOST_TEST(sim.credit_is_whole());
  BOOST_TEST(sim.sequences() == 0U);
  BOOST_TEST(sim.pages_in_use() > 0U);
}

BOOST_AUTO_TEST_CASE(a_lost_node_takes_every_prefix_with_it) {
  const topology::plan plan = planned("two nodes", sections);
  simulation sim(plan, {.seed = 9});
  const auto waves = turns(9);
  const auto first = sim.submit(waves[0]);
  BOOST_REQUIRE(first);
  sim.run();
  BOOST_TEST(sim.pages_in_use() > 0U);
  sim.kill(plan.nodes().back().name);
  sim.run();
  BOOST_REQUIRE(sim.failed());
  sim.recover();
  sim.run();
  BOOST_TEST(sim.pages_in_use() == 0U);
  const auto second = sim.submit(waves[1]);
  BOOST_REQUIRE(second);
  sim.run();
  const expected_answers cold = local_answers(waves[1], sim.limits());
  for (std::size_t i = 0; i < second->size(); ++i) {
    BOOST_REQUIRE((sim.rows.at((*second)[i]) == cold.rows[i]));
    BOOST_TEST(sim.finished.at((*second)[i]).cached_tokens == 0U);
  }
}

BOOST_AUTO_TEST_SUITE_END()
