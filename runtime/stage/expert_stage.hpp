// A slice of the routed experts of some layers, placed apart from their stages.
//
// It keeps nothing of a request: an answer follows from what is asked alone. So it needs neither
// step tables nor verdicts, and serves any stage of its layers in any order.
// Not thread-safe: one owner (an actor) calls it.
#pragma once

#include <vector>

#include "kernels/base/arena.hpp"
#include "kernels/ops/backend.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/expert_slice.hpp"
#include "runtime/model/weights.hpp"

namespace cedar::stage {

class expert_stage {
 public:
  /// `layers` [last - first + 1][E]: those of the slice are present. Backend and config must
  /// outlive the stage.
  expert_stage(const kernels::backend& backend, const model::model_config& config,
               model::expert_slice slice, std::vector<std::vector<model::expert_weights>> layers);

  /// The outputs of the experts that the rows of `request` (expert_rows) chose. Error malformed:
  /// not rows that chose experts of this slice.
  result<flow::row_block> answer(const flow::row_block& request);

  const model::expert_slice& slice() const noexcept { return slice_; }

 private:
  const kernels::backend& backend_;
  const model::model_config& config_;
  model::expert_slice slice_;
  std::vector<std::vector<model::expert_weights>> layers_;
  kernels::arena scratch_;
};

}  // namespace cedar::stage
