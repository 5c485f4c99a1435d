// Goal: what a policy knows before the first request is what steps and drafts take, and nothing of
// the made-up requests stays. Method: a pipeline that answers anything, with times by formula;
// every table and verdict against the rules of the real ones.
#include "runtime/session/cost_measurement.hpp"

#include <boost/test/unit_test.hpp>
#include <map>

using namespace cedar;
using namespace cedar::session;

namespace {

scheduler_limits pipeline_limits() {
  scheduler_limits limits;
  limits.rows_per_step = 64;
  limits.requests_max = 8;
  limits.context_max = 100;
  limits.vocabulary = 5;
  limits.image_token = 3;
  limits.lookback = 2;
  limits.kv_granule = 64;
  limits.draft_tokens_max = 5;
  return limits;
}

/// Answers a measurement, and looks at what it asks.
class measured_pipeline {
 public:
  measured_pipeline(const scheduler_limits& limits, double row_seconds, double draft_seconds)
      : limits_(limits),
        row_seconds_(row_seconds),
        draft_seconds_(draft_seconds),
        policy_(limits.draft_tokens_max, limits.rows_per_step),
        measurement_(limits, epoch_id{4}, policy_) {}

  void run() {
    while (const auto table = measurement_.next_step()) {
      BOOST_TEST(!measurement_.next_step());
      look_at(*table);
      flow::proposal proposal;
      proposal.step = table->step;
      proposal.epoch = table->epoch;
      const auto outcome = measurement_.accept(proposal);
      BOOST_REQUIRE(outcome);
      settle(*table, *outcome);
      measurement_.step_took(1e-3 + row_seconds_ * table->rows_count());
      if (outcome->orders.empty()) continue;
      BOOST_TEST(!measurement_.next_step());
      measurement_.drafts_took(draft_seconds_ * static_cast<double>(outcome->orders.size()));
    }
    BOOST_TEST(measurement_.done());
    BOOST_TEST(known_.empty());  // every request is over
  }

  draft_policy& policy() { return policy_; }
  const measured_costs& measured() const { return measurement_.measured(); }
  std::uint32_t largest_step() const { return largest_; }

 private:
  void look_at(const flow::step_table& table) {
    BOOST_TEST((table.epoch == epoch_id{4}));
    BOOST_TEST(table.rows_count() <= limits_.rows_per_step);
    BOOST_TEST(table.spans.size() <= limits_.requests_max);
    BOOST_TEST(table.tokens.size() == table.rows_count());
    for (const token_id token : table.tokens)
      BOOST_TEST((token >= 0 && token < 5 && token != limits_.image_token));
    largest_ = std::max(largest_, table.rows_count());
    std::vector<token_id> lookback;
    std::size_t row = 0;
    for (const flow::row_span& span : table.spans) {
      std::vector<token_id>& before = known_[span.request];
      BOOST_TEST(span.first_position == before.size());
      const std::size_t back = std::min<std::size_t>(before.size(), limits_.lookback);
      lookback.insert(lookback.end(), before.end() - static_cast<std::ptrdiff_t>(back),
                      before.end());
      if (const auto ordered = ordered_.extract(span.request))
        BOOST_TEST(table.tokens[row] == ordered.mapped());
      for (std::uint32_t i = 0; i < span.rows_count; ++i) before.push_back(table.tokens[row++]);
      BOOST_TEST(before.size() < std::min(limits_.context_max, limits_.kv_granule));
    }
    BOOST_TEST((table.lookback == lookback));
  }

  void settle(const flow::step_table& table, const step_outcome& outcome) {
    BOOST_TEST(outcome.events.empty());
    BOOST_REQUIRE(outcome.verdict.commitments.size() == table.spans.size());
    for (const flow::commitment& one : outcome.verdict.commitments) {
      BOOST_TEST(one.committed == known_.at(one.request).size());
      BOOST_TEST((one.kept == prefix_id{}));
      if (one.finished) known_.erase(one.request);
    }
    for (const flow::draft_order& order : outcome.orders) {
      BOOST_TEST(order.position == known_.at(order.request).size());
      BOOST_TEST(order.tokens_max == limits_.draft_tokens_max);
      ordered_[order.request] = order.last;
    }
  }

  scheduler_limits limits_;
  double row_seconds_;
  double draft_seconds_;
  draft_policy policy_;
  cost_measurement measurement_;
  std::map<request_id, std::vector<token_id>> known_;  ///< by requests that are not over
  std::map<request_id, token_id> ordered_;
  std::uint32_t largest_ = 0;
};

/// Whether drafting goes on after the trial of a first request whose drafts are so confident. Its
/// answers end at once: nothing says that they are wrong.
bool drafting_pays(draft_policy& policy, double row_seconds, float confidence) {
  const std::vector<float> draft(5, confidence);
  for (std::uint32_t i = 0; i < draft_policy::trial_steps; ++i) {
    policy.drafts_took(1, 1e-6);
    policy.lengths(std::vector<std::span<const float>>{draft}, 1, 1);
    policy.settled({1, 6, 1, true, {{draft, 5, 0, true}}});
    policy.step_took(1e-3 + 6 * row_seconds);
  }
  return policy.wants_drafts(1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(a_cost_measurement)

BOOST_AUTO_TEST_CASE(asks_only_what_a_pipeline_can_do) {
  measured_pipeline pipeline(pipeline_limits(), 1e-4, 1e-4);
  pipeline.run();
  BOOST_TEST(pipeline.largest_step() == cost_measurement::requests_max * 6);
  BOOST_TEST(pipeline.measured().steps == 2 * 3 * cost_measurement::rounds);
  BOOST_TEST(pipeline.measured().drafts == 2 * (cost_measurement::rounds - 1));
}

BOOST_AUTO_TEST_CASE(fits_into_small_pipelines) {
  for (const std::uint32_t rows : {1U, 2U, 5U, 7U})
    for (const std::uint32_t context : {1U, 2U, 4U, 9U}) {
      scheduler_limits limits = pipeline_limits();
      limits.rows_per_step = rows;
      limits.context_max = context;
      limits.requests_max = std::min(rows, 3U);
      limits.kv_granules = 2;
      measured_pipeline pipeline(limits, 1e-4, 1e-4);
      pipeline.run();
      BOOST_TEST((pipeline.measured().steps > 0) == (context > 1));
    }
}

BOOST_AUTO_TEST_CASE(spares_the_first_request_the_plain_steps) {
  const scheduler_limits limits = pipeline_limits();
  draft_policy ignorant(limits.draft_tokens_max, limits.rows_per_step);
  BOOST_TEST(!ignorant.wants_drafts(1));
  measured_pipeline pipeline(limits, 0, 1e-6);
  pipeline.run();
  BOOST_TEST(pipeline.policy().wants_drafts(1));
  BOOST_TEST(pipeline.policy().wants_drafts(cost_measurement::requests_max));
  BOOST_TEST(!pipeline.policy().wants_drafts(7));  // a step of 7 rows was not measured
}

// Without a plain step of a request.
BOOST_AUTO_TEST_CASE(says_what_drafts_are_worth) {
  for (const double row_seconds : {0.0, 1e-2}) {
    measured_pipeline pipeline(pipeline_limits(), row_seconds, 1e-6);
    pipeline.run();
    BOOST_TEST(drafting_pays(pipeline.policy(), row_seconds, 0.7F) == (row_seconds == 0.0));
  }
}

BOOST_AUTO_TEST_CASE(leaves_no_trace_in_the_report) {
  measured_pipeline pipeline(pipeline_limits(), 1e-4, 1e-4);
  pipeline.run();
  const draft_policy untouched(5, 64);
  BOOST_TEST((pipeline.policy().report() == untouched.report()));
}

BOOST_AUTO_TEST_CASE(ends_when_it_has_taken_long_enough) {
  measured_pipeline pipeline(pipeline_limits(), cost_measurement::seconds_max / 4, 0);
  pipeline.run();
  BOOST_TEST(pipeline.measured().seconds < 3 * cost_measurement::seconds_max);
  BOOST_TEST(pipeline.measured().steps < 6U);
}

BOOST_AUTO_TEST_CASE(takes_no_other_proposal) {
  const scheduler_limits limits = pipeline_limits();
  draft_policy policy(limits.draft_tokens_max, limits.rows_per_step);
  cost_measurement measurement(limits, epoch_id{4}, policy);
  BOOST_TEST((measurement.accept({}).error().code == errc::mismatch));
  const auto table = measurement.next_step();
  flow::proposal proposal;
  proposal.step = table->step;
  BOOST_TEST((measurement.accept(proposal).error().code == errc::mismatch));
  proposal.epoch = epoch_id{4};
  BOOST_TEST(measurement.accept(proposal).has_value());
  BOOST_TEST((measurement.accept(proposal).error().code == errc::mismatch));
}

BOOST_AUTO_TEST_SUITE_END()
