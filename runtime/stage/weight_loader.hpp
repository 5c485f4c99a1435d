// Binds the tensors of one placed unit to the structs that the model computes with.
//
// Only the tensors of the unit that is asked for are touched; shapes and dtypes are checked again
// here, so that a view of a wrong shape can never reach a kernel. Views are valid while the
// checkpoint lives. Errors: not_found or mismatch, naming the tensor.
#pragma once

#include <span>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/engram_shard.hpp"
#include "runtime/model/expert_slice.hpp"
#include "runtime/model/schedule.hpp"
#include "runtime/model/weights.hpp"
#include "runtime/store/checkpoint.hpp"

namespace cedar::stage {

/// Without the routed experts of the slices `elsewhere`.
result<model::layer_weights> load_layer(const store::checkpoint& checkpoint,
                                        const model::model_config& config,
                                        const model::schedule& schedule, std::uint32_t layer,
                                        std::span<const model::expert_slice> elsewhere = {});

/// The routed experts of one layer of a slice: [E], of which those of the slice are present.
result<std::vector<model::expert_weights>> load_experts(const store::checkpoint& checkpoint,
                                                        const model::model_config& config,
                                                        std::uint32_t layer,
                                                        const model::expert_slice& slice);

/// The token table [vocabulary, d].
result<kernels::matrix_view<const kernels::bf16>> load_embedding(
    const store::checkpoint& checkpoint, const model::model_config& config);

result<model::head_weights> load_head(const store::checkpoint& checkpoint,
                                      const model::model_config& config);

/// The rows of a shard, of its module's table; nothing else of it is mapped.
result<model::engram_table_weights> load_engram_rows(const store::checkpoint& checkpoint,
                                                     const model::model_config& config,
                                                     const model::engram_shard& shard);

/// The draft blocks (`mtp.*`) with the embedding and the vocabulary projection that they share with
/// the backbone; nothing else of it. Error not_found too if the model has no draft blocks.
result<model::drafter_weights> load_drafter(const store::checkpoint& checkpoint,
                                            const model::model_config& config);

}  // namespace cedar::stage
