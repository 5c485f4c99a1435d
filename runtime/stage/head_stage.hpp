// Final norm, vocabulary projection, and the head's proposal for every wanted row.
//
// The head only proposes: the scheduler decides which tokens stand.
#pragma once

#include "kernels/base/arena.hpp"
#include "kernels/ops/backend.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/model/rotary.hpp"
#include "runtime/model/taps.hpp"
#include "runtime/model/weights.hpp"
#include "runtime/stage/token_chooser.hpp"

namespace cedar::stage {

class head_stage {
 public:
  /// backend, config and the weights' checkpoint must outlive the stage.
  head_stage(const kernels::backend& backend, const model::model_config& config,
             const model::head_weights& weights)
      : backend_(backend), config_(config), weights_(weights) {}

  /// The token of every wanted row, chosen as its request asks (model/sampling.hpp; else the arg
  /// max), with its log-probability under the unfiltered softmax; the logit rows too if the step
  /// wants them. Errors: malformed (`input` is not the step's head_input; token_chooser::begin).
  result<flow::proposal> run(const flow::step_table& table, const flow::row_block& input,
                             const model::taps& probes);

  /// Forgets the requests that are over.
  void apply(const flow::verdict& verdict);
  /// Forgets all requests.
  void clear() { chooser_.clear(); }

 private:
  std::vector<flow::proposed_token> propose(const flow::step_table& table,
                                            kernels::matrix_view<const float> logits);

  const kernels::backend& backend_;
  const model::model_config& config_;
  model::head_weights weights_;
  model::rotary_frequencies no_rotary_;
  token_chooser chooser_{config_.eos_tokens};
  kernels::arena scratch_;
};

}  // namespace cedar::stage
