// Goal: with a drafter among the actors, wherever it is and whatever overtakes what, answers are
// those of the engine without drafts, and nothing is left over. Method: seeded random interleavings
// of whole topologies (simulation.hpp) with the model's own drafter, and with one that knows the
// answers; cancelled requests, requests that take each other's KV, and messages that are lost.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <map>
#include <random>

#include "tests/sim/actors/run_checks.hpp"

using namespace cedar;
using namespace cedar::test;
using namespace std::chrono_literals;
using topology::edge_kind;
namespace data = boost::unit_test::data;

namespace {

const std::string limits = "limits: {rows_per_step: 12, requests: 3, context: 64, ";

std::uint32_t drafted_tokens(const simulation& sim) {
  std::uint32_t sum = 0;
  for (const auto& [id, used] : sim.finished) sum += used.drafted_tokens;
  return sum;
}

std::uint32_t accepted_tokens(const simulation& sim) {
  std::uint32_t sum = 0;
  for (const auto& [id, used] : sim.finished) sum += used.accepted_tokens;
  return sum;
}

void run_and_compare(const std::string& topology, const std::string& steps, std::uint64_t seed,
                     bool small_windows) {
  const topology::plan plan = planned(topology, limits + steps);
  simulation sim(plan, {.seed = seed, .small_windows = small_windows});
  const auto requests = longer_requests(seed, 5);
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  sim.run();
  check_nothing_left(sim);
  check_answers(sim, *ids, local_answers(requests, sim.limits()));
  BOOST_TEST(drafted_tokens(sim) > 0U);
}

/// Knows the answers, and tells each token of them with a probability.
class guesser final : public session::drafter {
 public:
  explicit guesser(double probability) : probability_(probability) {}

  void learn(const std::vector<request_id>& ids, const expected_answers& expected) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (const answered_row& row : expected.rows[i]) known_[ids[i]][row.position + 1] = row.token;
  }

  result<std::vector<flow::draft>> draft_after(const flow::step_table& table,
                                               const session::step_outcome& outcome) override {
    BOOST_REQUIRE((table.step == outcome.verdict.step));
    std::vector<flow::draft> out;
    for (const flow::draft_order& order : outcome.orders) {
      flow::draft& made = out.emplace_back(flow::draft{order.request, order.position, {}, {}});
      for (std::uint32_t i = 1; i <= order.tokens_max; ++i)
        made.tokens.push_back(guess(order.request, order.position + i));
    }
    return out;
  }

 private:
  token_id guess(request_id request, std::uint32_t position) {
    const bool right = std::uniform_real_distribution<double>()(random_) < probability_;
    const auto known = known_.at(request).find(position);
    return right && known != known_.at(request).end() ? known->second
                                                      : static_cast<token_id>(3 + random_() % 500);
  }

  double probability_;
  std::mt19937_64 random_{5};
  std::map<request_id, std::map<std::uint32_t, token_id>> known_;
};

const auto topologies = data::make(placements_of(drafted_names()));

}  // namespace

BOOST_AUTO_TEST_SUITE(drafted)

BOOST_DATA_TEST_CASE(any_interleaving_gives_the_plain_answers,
                     topologies* data::xrange(1, 1 + seeds_count(6)), topology, seed) {
  run_and_compare(topology, "steps_in_flight: 3}\n", static_cast<std::uint64_t>(seed), false);
}

BOOST_DATA_TEST_CASE(windows_of_one_message_give_the_plain_answers,
                     topologies* data::xrange(100, 100 + seeds_count(4)), topology, seed) {
  run_and_compare(topology, "steps_in_flight: 4}\n", static_cast<std::uint64_t>(seed), true);
}

// Times are as random as the order of events, and so is what the policy makes of them.
BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_DATA_TEST_CASE(a_policy_that_turns_drafting_on_and_off_gives_the_plain_answers,
                     topologies* data::xrange(1, 1 + seeds_count(4)), topology, number) {
  const auto seed = static_cast<std::uint64_t>(number);
  const topology::plan plan = planned(
      topology,
      "limits: {rows_per_step: 12, requests: 3, context: 160, steps_in_flight: 3}\ndraft: auto\n");
  simulation sim(plan, {.seed = seed, .small_windows = number % 2 == 0});
  auto requests = longer_requests(seed, 6);
  for (session::generation_request& one : requests) {
    one.new_tokens_max += 40;
    if (number % 2 == 0) one.sampling = {};
  }
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  sim.run();
  check_nothing_left(sim);
  check_answers(sim, *ids, local_answers(requests, sim.limits()));
  BOOST_TEST(drafted_tokens(sim) > 0U);
  // The drafter has not heard of all steps, if no penalties had it count tokens.
  std::map<std::string, std::uint64_t> tables;
  for (const auto& [id, edge] : sim.edges())
    if (edge.kind == edge_kind::step_table) tables[plan[plan[id].consumer].name] = edge.messages;
  BOOST_TEST(tables.at("drafter") > 0U);
  if (number % 2 == 0) BOOST_TEST(tables.at("drafter") < tables.at("head"));
}

// Whole, or ended in the middle by the epoch in which requests come.
BOOST_DATA_TEST_CASE(costs_that_were_measured_change_no_answer,
                     topologies* data::xrange(1, 1 + seeds_count(4)), topology, number) {
  const auto seed = static_cast<std::uint64_t>(number);
  const topology::plan plan = planned(topology, limits + "steps_in_flight: 3}\ndraft: auto\n");
  simulation sim(plan, {.seed = seed, .small_windows = number % 2 == 0});
  sim.measure();
  if (number % 2 == 0) {
    for (std::size_t i = 0; i < 50 * seed; ++i) sim.act();
  } else {
    sim.run();
    check_nothing_left(sim);
    BOOST_REQUIRE(sim.measured.size() == 1U);
    BOOST_TEST(sim.measured[0].steps > 0U);
  }
  sim.recover();
  const auto requests = longer_requests(seed, 5);
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  sim.run();
  check_nothing_left(sim);
  check_answers(sim, *ids, local_answers(requests, sim.limits()));
}

BOOST_DATA_TEST_CASE(a_drafter_that_lags_behind_gives_the_plain_answers, topologies, topology) {
  const topology::plan plan = planned(topology, limits + "steps_in_flight: 3}\n");
  simulation sim(plan, {.seed = 7});
  const auto requests = longer_requests(7, 6);
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  // Requests whose prompts are on their way go on without it, until its credit is used up.
  run_with_a_laggard(sim, "drafter");
  check_nothing_left(sim);
  check_answers(sim, *ids, local_answers(requests, sim.limits()));
}

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_DATA_TEST_CASE(guesses_are_accepted_and_change_no_answer,
                     data::make({std::string("one node"), std::string("three nodes"),
                                 std::string("gather")}) *
                         data::make({0.0, 0.6, 1.0}),
                     topology, probability) {
  guesser guesses(probability);
  const topology::plan plan = planned(topology, limits + "steps_in_flight: 3}\n");
  simulation sim(plan, {.seed = 3, .drafter = &guesses});
  const auto requests = longer_requests(3, 5);
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  guesses.learn(*ids, local_answers(requests, sim.limits()));
  sim.run();
  check_nothing_left(sim);
  check_answers(sim, *ids, local_answers(requests, sim.limits()));
  BOOST_TEST(drafted_tokens(sim) > 0U);
  if (probability == 1.0) BOOST_TEST(accepted_tokens(sim) == drafted_tokens(sim));
  if (probability == 0.6) BOOST_TEST(accepted_tokens(sim) > 5U);
}

BOOST_DATA_TEST_CASE(cancelled_requests_leave_nothing_with_the_drafter,
                     topologies* data::xrange(1, 1 + seeds_count(5)), topology, seed) {
  const topology::plan plan = planned(topology, limits + "steps_in_flight: 3}\n");
  simulation sim(plan, {.seed = static_cast<std::uint64_t>(seed)});
  const auto requests = longer_requests(static_cast<std::uint64_t>(seed), 6);
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  run_and_cancel(sim, *ids, static_cast<std::uint64_t>(seed), 600);
  check_nothing_left(sim);
  const expected_answers expected = local_answers(requests, sim.limits());
  for (std::size_t i = 1; i < requests.size(); i += 2)
    BOOST_REQUIRE((sim.rows[(*ids)[i]] == expected.rows[i]));
}

// KV for three requests of four: orders are out for requests that lose it.
BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_DATA_TEST_CASE(requests_that_lose_their_kv_are_drafted_for_anew, topologies, topology) {
  const topology::plan plan =
      planned(topology,
              "limits: {rows_per_step: 64, requests: 4, context: 256, kv_positions: 384, "
              "prefill_rows: 40, steps_in_flight: 3}\n");
  simulation sim(plan, {.seed = 11});
  auto requests = longer_requests(11, 5);
  for (session::generation_request& one : requests) {
    one.forced.clear();
    one.prompt.resize(122 + one.prompt.size() % 6, 9);
    one.new_tokens_max = 12;
  }
  const auto ids = sim.submit(requests);
  BOOST_REQUIRE(ids);
  sim.run();
  check_nothing_left(sim);
  session::scheduler_limits plenty = sim.limits();
  plenty.kv_granules = std::numeric_limits<std::uint64_t>::max();
  const expected_answers expected = local_answers(requests, plenty);
  std::uint32_t preemptions = 0;
  for (std::size_t i = 0; i < ids->size(); ++i) {
    BOOST_REQUIRE((sim.rows.at((*ids)[i]) == expected.rows[i]));
    preemptions += sim.finished.at((*ids)[i]).preemptions;
  }
  BOOST_TEST(preemptions > 0U);
}

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_DATA_TEST_CASE(a_lost_message_is_noticed_by_the_deadline_of_the_draft,
                     data::make({edge_kind::draft_taps, edge_kind::draft_orders,
                                 edge_kind::draft_answers}) *
                         topologies,
                     kind, topology) {
  const topology::plan plan =
      planned(topology, limits + "steps_in_flight: 1}\ndeadlines_ms: {step: 700}\n");
  simulation sim(plan, {.seed = 1, .lost = std::pair(kind, 1U)});
  session::generation_request request;
  request.prompt = {10, 20, 30, 40};
  request.new_tokens_max = 40;
  request.ignore_eos = true;
  const auto ids = sim.submit({request});
  BOOST_REQUIRE(ids);
  sim.run();
  BOOST_TEST(sim.given_up_for.empty());
  sim.advance(650ms);
  sim.run();
  BOOST_TEST(sim.given_up_for.empty());
  sim.advance(50ms);
  sim.run();
  BOOST_REQUIRE_EQUAL(sim.given_up_for.size(), 1U);
  BOOST_TEST(sim.given_up_for[0].where == "drafter");
  BOOST_TEST(sim.given_up_for[0].what.message == "no draft within 700 ms (deadlines_ms.step)");
  BOOST_TEST((sim.given_up == *ids));
  // The next epoch begins with empty windows.
  sim.recover();
  const auto again = sim.submit({request});
  BOOST_REQUIRE(again);
  sim.run();
  BOOST_REQUIRE((sim.rows.at(again->front()) == local_answers({request}, sim.limits()).rows[0]));
}

BOOST_AUTO_TEST_SUITE_END()
