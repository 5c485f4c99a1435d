// What an index source does: which global entries each row will attend to.
//
// A row scores the index keys of all entries that it sees, or, at a layer that uses candidates,
// only those of its pool: the cost of such a layer does not grow with the context beyond the pool.
// Keys are read where they lie, in the pages of the owner's cache.
#pragma once

#include "runtime/model/context.hpp"
#include "runtime/model/schedule.hpp"
#include "runtime/model/weights.hpp"
#include "runtime/stage/step_rows.hpp"

namespace cedar::stage {

struct index_source {
  const model::model_config& config;
  const model::layer_schedule& schedule;
  std::uint32_t layer = 0;
};

/// Writes selections.by_source[source.layer] and, at the candidate source, selections.candidates.
/// x [n, d]: the attention sublayer's input; compressed [n, q_rank]: its query bottleneck.
void select_entries(const model::context& c, const index_source& source,
                    const model::indexer_weights& weights, const step_rows& rows,
                    kernels::matrix_view<const kernels::bf16> x,
                    kernels::matrix_view<const kernels::bf16> compressed,
                    step_selections& selections);

}  // namespace cedar::stage
