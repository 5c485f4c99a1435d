// What a draft_policy knows before the first request: times of a few steps and drafts of made-up
// requests, measured through whatever will run the real ones.
//
// 1. Driven like a step_scheduler by whoever has a clock: next_step(), accept(), then the time of
// the
//    step; if there are orders, the time of their drafts. Then the next step.
// 2. For one request, and for some together: steps without drafts, with drafts of one token, and
// with
//    whole ones, each `rounds` times; drafts between the rounds. The first round pages weights in,
//    which the costs, lower quartiles, leave out.
// 3. It ends when all of that is measured, or when `seconds_max` have been spent; the last verdict
//    frees its requests. Whoever drives it begins a new epoch afterwards, so that nothing of it is
//    left: neither numbers of steps and requests nor KV.
// The tokens are pseudo-random, so that the rows of a step choose different experts. Their answers
// go nowhere, and how much of a draft is right is not asked: real texts tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/session/draft_policy.hpp"
#include "runtime/session/step_scheduler.hpp"

namespace cedar::session {

/// What a measurement has taken.
struct measured_costs {
  std::uint32_t steps = 0;
  std::uint32_t drafts = 0;  ///< orders for them
  double seconds = 0;
};

/// "30 steps and 4 drafts in 41 ms".
std::string to_string(const measured_costs& costs);

class cost_measurement {
 public:
  static constexpr std::uint32_t rounds = 3;
  static constexpr std::uint32_t requests_max = 4;  ///< together
  static constexpr double seconds_max = 1;

  /// Of a pipeline that has these limits and a drafter, and holds no request, in `epoch`. `policy`
  /// must outlive the object.
  cost_measurement(const scheduler_limits& limits, epoch_id epoch, draft_policy& policy);

  /// The next step; nothing while an answer is awaited, and when it is done.
  std::optional<flow::step_table> next_step();
  /// The proposal of the step that is awaited. The outcome has no events. Error: mismatch (of
  /// another step).
  result<step_outcome> accept(const flow::proposal& proposal);
  /// The step that was accepted last took so long, from its table to its verdict.
  void step_took(double seconds);
  /// Its drafts took so long, from their order to their arrival.
  void drafts_took(double seconds);

  bool done() const noexcept { return done_; }
  const measured_costs& measured() const noexcept { return measured_; }

 private:
  struct planned_step {
    std::uint32_t requests = 0;
    std::uint32_t rows_each = 0;
    bool drafts_after = false;
    bool last = false;  ///< of its requests
  };
  enum class awaited : std::uint8_t { nothing, proposal, step_time, drafts };

  void plan(std::uint32_t requests);
  token_id next_token();
  bool is_last() const noexcept;

  scheduler_limits limits_;
  epoch_id epoch_;
  draft_policy& policy_;
  std::vector<planned_step> steps_;
  std::size_t at_ = 0;  ///< in steps_
  awaited awaits_ = awaited::nothing;
  bool done_ = false;
  std::uint64_t next_request_ = 1;  ///< the first of the requests that run
  std::vector<std::vector<token_id>> tokens_;  ///< of each of them: known rows, and the next one's
  std::uint32_t computed_ = 0;  ///< rows of each
  std::uint64_t random_ = 0x9e3779b97f4a7c15;
  measured_costs measured_;
};

}  // namespace cedar::session
