// How many drafted tokens a step verifies, and whether to draft at all: what makes most tokens in a
// second by what has been measured. Speed alone depends on it, never a token.
//
// 1. Length. A draft's token j of request r is accepted with a_rj, the product of its calibrated
//    confidences up to j (expected prefix survival). A step with rows B takes t(B). Of all drafted
//    tokens, taken in descending order of a, that number is verified which maximises
//        sum of a over the verified tokens - rate * t(B)
//    where `rate` is the best known tokens a second. (DSpark paper, length scheduler: tokens a
//    second of the step itself; both agree where the rate is the best one, and this one does not
//    spend a slow step on a poor draft only because the draft is already made. Verification is by
//    the noisy arg max, so that the search may look beyond the first token that does not pay.)
// 2. On and off. For S requests that go on together, drafting pays if, with ā the running mean of a
//    by place and d(S) the time of S drafts,
//        max over l >= 1 of S (1 + ā_1 + .. + ā_l) / (t(S (1 + l)) + d(S))   >   S / t(S)
//    Where that ceases to hold by 2 %, plain steps are measured again before it is believed; if it
//    holds again then, not once more before `recheck_pause` drafted steps.
// 3. Costs are those that were measured before the first request (cost_measurement), and then
// learnt
//    from the steps and drafts of requests (cost_table), by numbers of requests up to the same
//    power of two: first `trial_steps` plain steps, unless the time of one is known by measurement,
//    then as many with drafts, whole ones and shorter ones: how much of a draft is right, only
//    texts tell. So what is measured soon is what is run: links, other load and all.
// 4. Where drafting is off it is tried again: after `trial_pause` steps at least, and not before
//    plain steps have taken 100 times as long as the last trial has lost, all that it takes for the
//    drafter to catch up included; what a hiccup makes of that is bounded. Where it is on, a plain
//    step is run when the time of one is forgotten, and once after `recheck_pause` steps if none
//    was yet: what disturbed the measurement would else be believed for long.
// Steps with rows of prompts teach nothing, nor do those without drafts where drafts are wanted:
// they bring the drafter what it needs to begin. Deterministic: no clock, no chance; the times come
// from whoever has a clock. Not thread-safe: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "runtime/session/cost_table.hpp"
#include "runtime/session/draft_calibration.hpp"

namespace cedar::session {

/// What became of a draft in a step.
struct settled_draft {
  std::vector<float> confidences;  ///< of the whole draft, as for draft_policy::lengths()
  std::uint32_t verified = 0;  ///< tokens that had rows
  std::uint32_t accepted = 0;
  bool ended = false;  ///< the answer ended: nothing is known of what follows the accepted ones
};

/// A step whose verdict is settled.
struct settled_step {
  std::uint32_t requests = 0;
  std::uint32_t rows = 0;  ///< drafted ones included
  std::uint32_t tokens = 0;  ///< that stand
  bool decodes_only = false;  ///< no row of a prompt
  std::vector<settled_draft> drafts;  ///< of the requests that had one, be it empty
};

/// Counts since the policy was made. Of steps without rows of prompts, with drafts: time that their
/// tokens would have taken plain over the time that they took is what drafting gained.
struct draft_policy_report {
  std::vector<std::uint64_t> lengths;  ///< [k]: drafts of which k tokens were verified
  double predicted_plain_seconds = 0;  ///< of the expected tokens
  double predicted_seconds = 0;
  double realised_plain_seconds = 0;  ///< of the tokens that stand
  double realised_seconds = 0;

  friend bool operator==(const draft_policy_report&, const draft_policy_report&) = default;
};

class draft_policy {
 public:
  static constexpr std::uint32_t trial_steps = 5;
  static constexpr std::uint32_t trial_pause = 150;
  static constexpr std::uint32_t recheck_pause = 32;

  /// `tokens_max`: of one draft; `rows_max`: of one step.
  draft_policy(std::uint32_t tokens_max, std::uint32_t rows_max);

  /// Before the first request: a step of so many rows, or so many drafts together, took so long.
  void measured_step(std::uint32_t rows, double seconds);
  void measured_drafts(std::uint32_t requests, double seconds);

  /// Whether `requests` that go on together should have drafts.
  bool wants_drafts(std::uint32_t requests) const;

  /// How many tokens of each draft the next step should verify. `confidences`: of each token that
  /// could have been drafted, 0 for one that was not. `requests`: that decode in the step; `rows`:
  /// of it without drafted tokens.
  std::vector<std::uint32_t> lengths(std::span<const std::span<const float>> confidences,
                                     std::uint32_t requests, std::uint32_t rows);

  /// In the order of the steps.
  void settled(settled_step step);
  /// The step that was settled last took so long, from its table to its verdict.
  void step_took(double seconds);
  /// `requests` drafts together took so long, from their order to their arrival.
  void drafts_took(std::uint32_t requests, double seconds);

  const draft_policy_report& report() const noexcept { return report_; }

 private:
  enum class phase : std::uint8_t { try_plain, try_drafts, drafting, plain };
  /// Numbers of requests up to the same power of two.
  struct regime {
    phase now = phase::try_plain;
    std::uint32_t left = trial_steps;  ///< of what is being tried
    bool tried_drafts = false;
    bool plain_is_told = false;  ///< its time is only known from before the first request
    std::uint32_t plain_steps = 0;  ///< since drafting was turned off
    std::uint32_t trusted_steps = 0;  ///< drafted steps before the gain is doubted again
    double debt = 0;  ///< plain steps that the last trial cost, less 1 % of those since
  };

  regime first_regime(std::uint32_t requests) const;
  regime regime_of(std::uint32_t requests) const;
  double plain_rate(std::uint32_t requests) const;
  double drafted_rate(std::uint32_t requests) const;
  double gain(std::uint32_t requests) const;
  std::uint32_t trial_length(std::uint32_t left) const noexcept;
  std::vector<double> survival(std::span<const float> confidences) const;
  void remember(std::span<const double> survival);
  void account(const settled_step& step, double step_seconds, double draft_seconds);
  void advance(regime& at, const settled_step& step, double seconds);
  void try_plain(regime& at, std::uint32_t steps) const;
  void try_drafts(regime& at);
  void judge(regime& at, std::uint32_t requests) const;

  std::uint32_t tokens_max_;
  std::uint32_t rows_max_;
  cost_table steps_;  ///< by rows
  cost_table drafts_;  ///< by requests
  draft_calibration calibration_;
  std::vector<double> typical_;  ///< ā
  double typical_weight_ = 0;  ///< drafts that it stands for
  bool measured_ = false;  ///< steps, before the first request
  std::map<int, regime> regimes_;  ///< by the binary digits of the number of requests
  settled_step last_;  ///< whose time is not known yet
  double draft_seconds_ = 0;  ///< of drafts whose step is not known yet
  draft_policy_report report_;
};

}  // namespace cedar::session
