#include "runtime/session/cost_measurement.hpp"

#include <algorithm>
#include <cmath>

namespace cedar::session {

std::string to_string(const measured_costs& costs) {
  return std::to_string(costs.steps) + " steps and " + std::to_string(costs.drafts) +
         " drafts in " + std::to_string(std::lround(costs.seconds * 1e3)) + " ms";
}

cost_measurement::cost_measurement(const scheduler_limits& limits, epoch_id epoch,
                                   draft_policy& policy)
    : limits_(limits), epoch_(epoch), policy_(policy) {
  plan(1);
  const auto together = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      {requests_max, limits.requests_max, limits.rows_per_step, limits.kv_granules}));
  if (together > 1) plan(together);
  done_ = steps_.empty();
}

/// As far as steps and contexts have room.
void cost_measurement::plan(std::uint32_t requests) {
  std::vector<std::uint32_t> lengths{1, 2, 1 + limits_.draft_tokens_max};
  lengths.erase(std::ranges::unique(lengths).begin(), lengths.end());
  const std::uint32_t positions = std::min(limits_.context_max, limits_.kv_granule);
  const std::size_t first = steps_.size();
  std::uint32_t rows = 0;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const std::size_t begin = steps_.size();
    for (const std::uint32_t length : lengths) {
      if (requests * length > limits_.rows_per_step || rows + length >= positions) continue;
      rows += length;
      steps_.push_back({requests, length, false, false});
    }
    if (steps_.size() > begin) steps_.back().drafts_after = true;
  }
  if (steps_.size() == first) return;
  steps_.back().last = true;
  steps_.back().drafts_after = false;
}

/// xorshift64; never the image token, whose row would be a picture's.
token_id cost_measurement::next_token() {
  token_id token = limits_.image_token;
  while (token == limits_.image_token) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    token = static_cast<token_id>(random_ % limits_.vocabulary);
  }
  return token;
}

bool cost_measurement::is_last() const noexcept {
  return steps_[at_].last || measured_.seconds >= seconds_max;
}

std::optional<flow::step_table> cost_measurement::next_step() {
  if (done_ || awaits_ != awaited::nothing) return std::nullopt;
  const planned_step& step = steps_[at_];
  tokens_.resize(step.requests);
  flow::step_table table;
  table.step = step_id{++measured_.steps};
  table.epoch = epoch_;
  for (std::uint32_t i = 0; i < step.requests; ++i) {
    std::vector<token_id>& known = tokens_[i];
    while (known.size() < computed_ + step.rows_each) known.push_back(next_token());
    table.spans.push_back({request_id{next_request_ + i}, computed_, step.rows_each, 0});
    const auto rows = known.begin() + computed_;
    table.tokens.insert(table.tokens.end(), rows, rows + step.rows_each);
    table.lookback.insert(table.lookback.end(), rows - std::min(computed_, limits_.lookback), rows);
  }
  awaits_ = awaited::proposal;
  return table;
}

result<step_outcome> cost_measurement::accept(const flow::proposal& proposal) {
  if (awaits_ != awaited::proposal || proposal.epoch != epoch_ ||
      proposal.step.value != measured_.steps)
    return fail(errc::mismatch, "a proposal for step " + std::to_string(proposal.step.value) +
                                    " answers no step of the measurement");
  const planned_step& step = steps_[at_];
  const bool last = is_last();
  computed_ += step.rows_each;
  step_outcome out;
  out.verdict.step = proposal.step;
  out.verdict.epoch = epoch_;
  for (std::uint32_t i = 0; i < step.requests; ++i) {
    const request_id request{next_request_ + i};
    out.verdict.commitments.push_back({request, computed_, last});
    if (last || !step.drafts_after) continue;
    tokens_[i].push_back(next_token());
    out.orders.push_back({request, tokens_[i].back(), computed_, limits_.draft_tokens_max});
  }
  awaits_ = awaited::step_time;
  return out;
}

void cost_measurement::step_took(double seconds) {
  const planned_step& step = steps_[at_];
  const bool last = is_last();
  policy_.measured_step(step.requests * step.rows_each, seconds);
  measured_.seconds += seconds;
  awaits_ = !last && step.drafts_after ? awaited::drafts : awaited::nothing;
  if (awaits_ == awaited::nothing) ++at_;
  if (!last) return;
  next_request_ += step.requests;
  tokens_.clear();
  computed_ = 0;
  done_ = at_ == steps_.size() || measured_.seconds >= seconds_max;
}

void cost_measurement::drafts_took(double seconds) {
  policy_.measured_drafts(steps_[at_].requests, seconds);
  measured_.seconds += seconds;
  ++measured_.drafts;
  awaits_ = awaited::nothing;
  ++at_;
}

}  // namespace cedar::session
