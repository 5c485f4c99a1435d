// Goal: the policy drafts where it pays, as long as it pays, and costs next to nothing where it
// does not. Method: a made-up pipeline with known times and a drafter of known acceptance, in
// made-up time; the yardstick are the same pipeline plain and with every fixed length.
#include "runtime/session/draft_policy.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <random>

using namespace cedar;
using namespace cedar::session;

namespace {

constexpr std::uint32_t tokens_max = 5;
constexpr std::uint32_t rows_max = 128;

struct world {
  std::function<double(std::uint32_t rows)> step = [](std::uint32_t) { return 1.0; };
  std::function<double(std::uint32_t requests)> draft = [](std::uint32_t) { return 0.2; };
  double easy = 0.9;  ///< P(token is accepted) of half of the drafts
  double hard = 0.9;  ///< of the others
  double boast = 0;  ///< how much too high confidences are
  double hiccups = 0;  ///< share of times that are ten times as long
};

/// What came of a number of cycles.
struct outcome {
  double tokens = 0;  ///< on average
  double seconds = 0;
  std::uint32_t cycles = 0;
  std::uint32_t drafted = 0;  ///< cycles with drafts
  double verified = 0;

  double rate() const { return tokens / seconds; }
  double length(std::uint32_t requests) const {
    return drafted == 0 ? 0 : verified / drafted / requests;
  }
};

class simulation {
 public:
  explicit simulation(std::uint64_t seed = 1) : random_(seed) {}

  outcome run(const world& in, std::uint32_t requests, std::uint32_t cycles) {
    outcome out;
    for (out.cycles = 0; out.cycles < cycles; ++out.cycles) cycle(in, requests, out);
    return out;
  }

  draft_policy policy{tokens_max, rows_max};

 private:
  bool chance(double probability) {
    return std::uniform_real_distribution<double>()(random_) < probability;
  }
  double disturbed(const world& in, double seconds) {
    return chance(in.hiccups) ? 10 * seconds : seconds;
  }

  void cycle(const world& in, std::uint32_t requests, outcome& out) {
    settled_step step{requests, requests, requests, true, {}};
    if (policy.wants_drafts(requests)) draft(in, requests, step, out);
    const double seconds = disturbed(in, in.step(step.rows));
    out.tokens += requests;
    out.seconds += seconds;
    policy.settled(std::move(step));
    policy.step_took(seconds);
  }

  void draft(const world& in, std::uint32_t requests, settled_step& step, outcome& out) {
    const double seconds = disturbed(in, in.draft(requests));
    policy.drafts_took(requests, seconds);
    out.seconds += seconds;
    ++out.drafted;
    std::vector<double> truth;
    std::vector<std::vector<float>> confidences;
    for (std::uint32_t i = 0; i < requests; ++i) {
      truth.push_back(chance(0.5) ? in.easy : in.hard);
      confidences.emplace_back(tokens_max, static_cast<float>(std::min(truth[i] + in.boast, 1.0)));
    }
    const std::vector<std::span<const float>> views(confidences.begin(), confidences.end());
    const std::vector<std::uint32_t> lengths = policy.lengths(views, requests, requests);
    for (std::uint32_t i = 0; i < requests; ++i) {
      // The scheduler takes no more than fits.
      const std::uint32_t length = std::min(lengths[i], rows_max - step.rows);
      std::uint32_t accepted = 0;
      while (accepted < length && chance(truth[i])) ++accepted;
      for (std::uint32_t place = 1; place <= length; ++place)
        out.tokens += std::pow(truth[i], place);
      step.rows += length;
      step.tokens += accepted;
      step.drafts.push_back({confidences[i], length, accepted, false});
      out.verified += length;
    }
  }

  std::mt19937_64 random_;
};

/// The best that can be had without a policy.
double best_rate(const world& in, std::uint32_t requests) {
  double best = requests / in.step(requests);
  double tokens = requests;
  for (std::uint32_t length = 1; length <= tokens_max; ++length) {
    tokens += requests * (std::pow(in.easy, length) + std::pow(in.hard, length)) / 2;
    const std::uint32_t rows = requests * (1 + length);
    if (rows <= rows_max) best = std::max(best, tokens / (in.step(rows) + in.draft(requests)));
  }
  return best / (1 + 9 * in.hiccups);
}

double linear(std::uint32_t rows) {
  return rows;
}
double flat(std::uint32_t) {
  return 1;
}
/// A pass over the weights, then work by rows.
double mixed(std::uint32_t rows) {
  return 1 + 0.15 * rows;
}
/// Links of a pipeline.
double far(std::uint32_t rows) {
  return 20 + 0.5 * rows;
}
/// As much as fits a tile of eight costs the same.
double tiled(std::uint32_t rows) {
  return (rows + 7) / 8;
}

struct cost {
  const char* name;
  double (*step)(std::uint32_t rows);
};
std::ostream& operator<<(std::ostream& to, const cost& one) {
  return to << one.name;
}
const cost costs[] = {
    {"flat", flat}, {"linear", linear}, {"mixed", mixed}, {"far", far}, {"tiled", tiled}};
const double acceptances[] = {0.05, 0.4, 0.8, 0.95};
const std::uint32_t batches[] = {1, 4, 16, 40};

}  // namespace

namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(the_draft_policy)

BOOST_DATA_TEST_CASE(is_about_as_fast_as_the_best_fixed_choice,
                     data::make(costs) * data::make(acceptances) * data::make(batches), cost,
                     acceptance, requests) {
  const world in{.step = cost.step, .easy = acceptance, .hard = acceptance / 2};
  simulation one;
  one.run(in, requests, 200);
  const double rate = one.run(in, requests, 1000).rate();
  BOOST_TEST_MESSAGE(rate / best_rate(in, requests) << " of the best");
  BOOST_TEST(rate > 0.97 * best_rate(in, requests));
}

BOOST_AUTO_TEST_CASE(verifies_all_that_is_free) {
  simulation one;
  one.run({}, 1, 50);
  BOOST_TEST(one.run({}, 1, 100).length(1) == tokens_max);
}

BOOST_AUTO_TEST_CASE(drafts_next_to_never_where_rows_cost_as_much_as_steps) {
  simulation one;
  const world in{.step = linear};
  one.run(in, 4, 50);
  const outcome after = one.run(in, 4, 2000);
  BOOST_TEST(after.drafted <= after.cycles / 50);
  BOOST_TEST(after.rate() > 0.98);
}

BOOST_AUTO_TEST_CASE(verifies_little_of_what_will_hardly_be_accepted) {
  simulation one;
  const world likely{.step = mixed, .easy = 0.95, .hard = 0.95};
  const world unlikely{.step = mixed, .easy = 0.45, .hard = 0.45};
  one.run(likely, 1, 100);
  BOOST_TEST(one.run(likely, 1, 500).length(1) > 4);
  simulation other;
  other.run(unlikely, 1, 100);
  const outcome after = other.run(unlikely, 1, 500);
  BOOST_TEST(after.length(1) < 2.5);
}

BOOST_AUTO_TEST_CASE(prefers_the_requests_whose_drafts_are_likely) {
  draft_policy policy(tokens_max, rows_max);
  for (std::uint32_t rows = 1; rows <= 64; rows *= 2) {
    policy.settled({2, rows, 2, true, {}});
    policy.step_took(mixed(rows));
  }
  const std::vector<float> likely(tokens_max, 0.95F);
  const std::vector<float> unlikely(tokens_max, 0.1F);
  for (std::uint32_t i = 0; i < 2 * draft_policy::trial_steps; ++i) {
    policy.drafts_took(2, 0.1);
    policy.lengths(std::vector<std::span<const float>>{likely, unlikely}, 2, 2);
    policy.settled({2, 2, 2, true, {{likely, 0, 0, false}, {unlikely, 0, 0, false}}});
    policy.step_took(mixed(2));
  }
  const auto lengths = policy.lengths(std::vector<std::span<const float>>{likely, unlikely}, 2, 2);
  BOOST_TEST(lengths[0] == tokens_max);
  BOOST_TEST(lengths[1] == 0U);
}

BOOST_AUTO_TEST_CASE(does_not_believe_a_drafter_that_boasts) {
  simulation one;
  const world in{.step = mixed, .easy = 0.1, .hard = 0.1, .boast = 0.85};
  one.run(in, 1, 200);
  const outcome after = one.run(in, 1, 2000);
  BOOST_TEST(after.drafted <= after.cycles / 50);
  BOOST_TEST(after.rate() > 0.97 * best_rate(in, 1));
}

BOOST_AUTO_TEST_CASE(stops_soon_after_rows_become_dear) {
  simulation one;
  one.run({.step = flat}, 4, 300);
  const outcome change = one.run({.step = linear}, 4, 60);
  BOOST_TEST(change.drafted < 50U);
  BOOST_TEST(one.run({.step = linear}, 4, 50).drafted == 0U);
}

BOOST_AUTO_TEST_CASE(begins_again_when_rows_become_cheap) {
  simulation one;
  one.run({.step = linear}, 4, 300);
  one.run({.step = flat}, 4, 1200);
  const outcome after = one.run({.step = flat}, 4, 100);
  BOOST_TEST(after.drafted == after.cycles);
}

BOOST_AUTO_TEST_CASE(begins_again_when_drafts_become_good) {
  simulation one;
  one.run({.step = mixed, .easy = 0.05, .hard = 0.05}, 1, 500);
  const world good{.step = mixed};
  one.run(good, 1, 800);
  BOOST_TEST(one.run(good, 1, 500).rate() > 0.95 * best_rate(good, 1));
}

BOOST_AUTO_TEST_CASE(decides_for_few_and_many_requests_apart) {
  simulation one;
  const world in{.step = tiled};
  for (std::uint32_t turn = 0; turn < 3; ++turn)
    for (const std::uint32_t requests : {1U, 16U}) one.run(in, requests, 100);
  const outcome few = one.run(in, 1, 100);
  BOOST_TEST(few.drafted >= few.cycles - draft_policy::trial_steps);
  const outcome many = one.run(in, 16, 100);
  BOOST_TEST(many.drafted <= draft_policy::trial_steps);
}

BOOST_AUTO_TEST_CASE(is_not_misled_by_hiccups) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    simulation one(seed);
    const world in{.step = mixed, .hiccups = 0.05};
    one.run(in, 1, 100);
    BOOST_TEST(one.run(in, 1, 3000).rate() > 0.93 * best_rate(in, 1));
  }
}

BOOST_AUTO_TEST_CASE(does_not_believe_a_disturbed_measurement_for_long) {
  simulation run;
  for (int round = 0; round < 3; ++round) run.policy.measured_step(4, 100);
  const world in{.step = linear};
  const auto soon = draft_policy::trial_steps + draft_policy::recheck_pause + 2;
  BOOST_TEST(run.run(in, 4, soon).drafted > draft_policy::trial_steps);
  BOOST_TEST(run.run(in, 4, 100).drafted == 0U);
}

BOOST_AUTO_TEST_CASE(learns_nothing_from_prompts_and_impossible_times) {
  draft_policy policy(tokens_max, rows_max);
  for (std::uint32_t i = 0; i < 10 * draft_policy::trial_steps; ++i) {
    policy.settled({1, 100, 1, false, {}});
    policy.step_took(1);
    policy.settled({1, 1, 1, true, {}});
    policy.step_took(0);
  }
  BOOST_TEST(!policy.wants_drafts(1));
}

BOOST_AUTO_TEST_CASE(reports_what_it_chose_and_what_that_gained) {
  simulation one;
  const outcome all = one.run({}, 1, 500);
  const draft_policy_report& report = one.policy.report();
  std::uint64_t drafts = 0;
  double verified = 0;
  for (std::size_t length = 0; length < report.lengths.size(); ++length) {
    drafts += report.lengths[length];
    verified += static_cast<double>(length * report.lengths[length]);
  }
  BOOST_TEST(drafts == all.drafted);
  BOOST_TEST(verified == all.verified);
  // Plain, a token takes 1; drafted, 1 + 0.9 + .. + 0.9^5 take 1.2.
  BOOST_TEST(report.realised_plain_seconds / report.realised_seconds == 4.69 / 1.2,
             boost::test_tools::tolerance(0.05));
  BOOST_TEST(report.predicted_plain_seconds / report.predicted_seconds == 4.69 / 1.2,
             boost::test_tools::tolerance(0.05));
}

BOOST_AUTO_TEST_SUITE_END()
