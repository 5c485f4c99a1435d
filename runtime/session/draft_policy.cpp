#include "runtime/session/draft_policy.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace cedar::session {

namespace {

constexpr double doubt = 0.98;  ///< a gain below it is looked into
constexpr double trial_share = 0.01;  ///< of plain steps, which trials may cost
constexpr double trial_step_max = 8;  ///< plain steps that one of a trial counts for at most
constexpr double trial_debt_max = 16;  ///< and all of it
constexpr double typical_weight_max = 64;  ///< drafts that the running mean remembers
constexpr double typical_weight_tried = 8;  ///< of them, what is left when drafts are tried again

/// A drafted token that a step could verify.
struct candidate {
  double survival = 0;
  std::size_t draft = 0;
};

}  // namespace

draft_policy::draft_policy(std::uint32_t tokens_max, std::uint32_t rows_max)
    : tokens_max_(tokens_max), rows_max_(rows_max) {
  typical_.resize(tokens_max);
  report_.lengths.resize(tokens_max + 1);
}

void draft_policy::measured_step(std::uint32_t rows, double seconds) {
  steps_.observe(rows, seconds);
  measured_ = true;
}

void draft_policy::measured_drafts(std::uint32_t requests, double seconds) {
  drafts_.observe(requests, seconds);
}

draft_policy::regime draft_policy::first_regime(std::uint32_t requests) const {
  regime out;
  if (!measured_ || !steps_.knows(requests)) return out;
  out.now = phase::try_drafts;
  out.tried_drafts = true;
  out.plain_is_told = true;
  return out;
}

draft_policy::regime draft_policy::regime_of(std::uint32_t requests) const {
  const auto found = regimes_.find(std::bit_width(requests));
  return found == regimes_.end() ? first_regime(requests) : found->second;
}

bool draft_policy::wants_drafts(std::uint32_t requests) const {
  const phase now = regime_of(requests).now;
  return now == phase::try_drafts || now == phase::drafting;
}

/// Tokens a second of `requests` that go on together; 0 if no step's time is known.
double draft_policy::plain_rate(std::uint32_t requests) const {
  const auto step = steps_.seconds(requests);
  return step ? requests / *step : 0;
}

double draft_policy::drafted_rate(std::uint32_t requests) const {
  const double draft = drafts_.seconds(requests).value_or(0);
  double best = 0;
  double accepted = 0;
  for (std::uint32_t length = 1; length <= tokens_max_ && requests < rows_max_; ++length) {
    accepted += typical_[length - 1];
    const std::uint32_t rows = std::min(requests * (1 + length), rows_max_);
    const double share = static_cast<double>(rows - requests) / (requests * length);
    const auto step = steps_.seconds(rows);
    if (step) best = std::max(best, requests * (1 + share * accepted) / (*step + draft));
  }
  return best;
}

/// Of drafting over plain steps; 0 if no step's time is known.
double draft_policy::gain(std::uint32_t requests) const {
  const double plain = plain_rate(requests);
  return plain > 0 ? drafted_rate(requests) / plain : 0;
}

/// Whole drafts, and between them one of a token and one of half of them.
std::uint32_t draft_policy::trial_length(std::uint32_t left) const noexcept {
  if (left == 4) return 1;
  return left == 2 ? (tokens_max_ + 1) / 2 : tokens_max_;
}

std::vector<double> draft_policy::survival(std::span<const float> confidences) const {
  std::vector<double> out;
  double all = 1;
  for (const float confidence : confidences)
    out.push_back(all *= calibration_.probability(out.size(), confidence));
  return out;
}

void draft_policy::remember(std::span<const double> survival) {
  for (std::size_t i = 0; i < std::min(survival.size(), typical_.size()); ++i)
    typical_[i] += (survival[i] - typical_[i]) / (typical_weight_ + 1);
  typical_weight_ = std::min(typical_weight_ + 1, typical_weight_max);
}

std::vector<std::uint32_t> draft_policy::lengths(
    std::span<const std::span<const float>> confidences, std::uint32_t requests,
    std::uint32_t rows) {
  std::vector<std::uint32_t> out(confidences.size());
  std::vector<candidate> all;
  for (std::size_t draft = 0; draft < confidences.size(); ++draft) {
    const std::vector<double> survives = survival(confidences[draft]);
    remember(survives);
    for (const double one : survives) all.push_back({one, draft});
  }
  const double rate = std::max(plain_rate(requests), drafted_rate(requests));
  const regime at = regime_of(requests);
  if (rate == 0 || at.now == phase::try_drafts) {
    std::ranges::fill(out, trial_length(at.left));
    return out;
  }
  // Within a draft survival never rises, so that what is taken of it is a prefix.
  std::ranges::stable_sort(all, std::greater<>(), &candidate::survival);
  std::size_t taken = 0;
  double tokens = 0;
  double best = -rate * *steps_.seconds(rows);
  const std::size_t room = rows_max_ - std::min(requests, rows_max_);
  for (std::size_t i = 0; i < std::min(all.size(), room); ++i) {
    tokens += all[i].survival;
    const double worth = tokens - rate * *steps_.seconds(rows + static_cast<std::uint32_t>(i) + 1);
    if (worth <= best) continue;
    best = worth;
    taken = i + 1;
  }
  for (const candidate& one : std::span(all).first(taken)) ++out[one.draft];
  return out;
}

void draft_policy::settled(settled_step step) {
  for (const settled_draft& draft : step.drafts) {
    for (std::uint32_t i = 0; i < draft.accepted; ++i)
      calibration_.observe(i, draft.confidences[i], true);
    if (draft.accepted < draft.verified && !draft.ended)
      calibration_.observe(draft.accepted, draft.confidences[draft.accepted], false);
    ++report_.lengths[draft.verified];
  }
  last_ = std::move(step);
}

void draft_policy::step_took(double seconds) {
  const settled_step step = std::exchange(last_, {});
  const double draft_seconds = step.drafts.empty() ? 0 : std::exchange(draft_seconds_, 0);
  if (!step.decodes_only || !std::isfinite(seconds) || seconds <= 0) return;
  regime& at = regimes_.try_emplace(std::bit_width(step.requests), first_regime(step.requests))
                   .first->second;
  if (!step.drafts.empty() || !wants_drafts(step.requests)) steps_.observe(step.rows, seconds);
  if (!step.drafts.empty()) account(step, seconds, draft_seconds);
  advance(at, step, seconds + draft_seconds);
}

void draft_policy::drafts_took(std::uint32_t requests, double seconds) {
  drafts_.observe(requests, seconds);
  draft_seconds_ += seconds;
}

void draft_policy::account(const settled_step& step, double step_seconds, double draft_seconds) {
  const double plain = plain_rate(step.requests);
  if (plain == 0) return;
  double expected = step.requests;
  for (const settled_draft& draft : step.drafts)
    for (const double one : survival(std::span(draft.confidences).first(draft.verified)))
      expected += one;
  report_.predicted_plain_seconds += expected / plain;
  report_.predicted_seconds +=
      steps_.seconds(step.rows).value_or(0) + drafts_.seconds(step.requests).value_or(0);
  report_.realised_plain_seconds += step.tokens / plain;
  report_.realised_seconds += step_seconds + draft_seconds;
}

void draft_policy::advance(regime& at, const settled_step& step, double seconds) {
  const bool drafted = !step.drafts.empty();
  switch (at.now) {
    case phase::try_plain:
      if (drafted || --at.left > 0) return;
      at.plain_is_told = false;
      if (!at.tried_drafts) return try_drafts(at);
      at.trusted_steps = recheck_pause;
      return judge(at, step.requests);
    case phase::try_drafts:
      at.debt += std::min(seconds * plain_rate(step.requests) / step.requests, trial_step_max) -
                 static_cast<double>(step.tokens) / step.requests;
      if (!drafted || --at.left > 0) return;
      at.debt = std::min(at.debt, trial_debt_max);
      return judge(at, step.requests);
    case phase::drafting:
      if (!drafted) return;
      if (at.trusted_steps > 0) {
        --at.trusted_steps;
        return;
      }
      if (gain(step.requests) < doubt) return try_plain(at, trial_steps);
      if (at.plain_is_told || !steps_.knows(step.requests)) try_plain(at, 1);
      return;
    case phase::plain:
      if (drafted) return;
      ++at.plain_steps;
      at.debt -= trial_share;
      if (at.plain_steps >= trial_pause && at.debt <= 0) try_drafts(at);
      return;
  }
}

void draft_policy::try_plain(regime& at, std::uint32_t steps) const {
  at.now = phase::try_plain;
  at.left = steps;
}

void draft_policy::try_drafts(regime& at) {
  at.now = phase::try_drafts;
  at.left = trial_steps;
  at.tried_drafts = true;
  at.trusted_steps = 0;
  at.debt = 0;
  typical_weight_ = std::min(typical_weight_, typical_weight_tried);
}

void draft_policy::judge(regime& at, std::uint32_t requests) const {
  at.now = gain(requests) > 1 ? phase::drafting : phase::plain;
  at.plain_steps = 0;
  if (at.plain_is_told) at.trusted_steps = recheck_pause;
}

}  // namespace cedar::session
