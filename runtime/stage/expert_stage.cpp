#include "runtime/stage/expert_stage.hpp"

#include "kernels/base/check.hpp"
#include "runtime/stage/expert_blocks.hpp"
#include "runtime/stage/row_layout.hpp"

namespace cedar::stage {

using flow::row_kind;

expert_stage::expert_stage(const kernels::backend& backend, const model::model_config& config,
                           model::expert_slice slice,
                           std::vector<std::vector<model::expert_weights>> layers)
    : backend_(backend), config_(config), slice_(std::move(slice)), layers_(std::move(layers)) {
  CEDAR_REQUIRE(layers_.size() == slice_.last_layer - slice_.first_layer + 1,
                "a slice needs the experts of each of its layers");
}

result<flow::row_block> expert_stage::answer(const flow::row_block& request) {
  const auto rows = expert_rows_of(request, config_, slice_);
  if (!rows) return fail(rows.error());
  scratch_.reset();
  const auto groups =
      model::group_by_expert(scratch_, config_.routed_experts, rows->experts, rows->weights);
  const auto& weights = layers_[request.layer - slice_.first_layer];
  const std::size_t choices = groups.rows.size();
  kernels::buffer memory(choices * row_bytes(row_kind::expert_outputs, config_));
  model::run_experts({backend_, config_, scratch_}, weights, {rows->codes, rows->scales}, groups,
                     {reinterpret_cast<kernels::bf16*>(memory.data()), choices, config_.width});
  return answer_block(row_kind::expert_outputs, request, config_, std::move(memory));
}

}  // namespace cedar::stage
