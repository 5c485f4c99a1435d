// What an index source does: which global entries each row will attend to.
//
// A row scores the index keys of all entries that it sees, or, at a layer that uses candidates,
// only those of its pool: the cost of such a layer does not grow with the context beyond the pool.
// Keys are read where they lie, in the pages of the owner's cache.
#pragma once

#include "runtime/model/context.hpp"
#include "runtime/model/indexer.hpp"
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

/// Chosen positions as a padded [n, width] table for a probe.
void offer_selection(const model::context& c, std::uint32_t layer, const selection& chosen);

/// The first `entries` index keys of a cache, in its pages.
model::index_keys keys_of(kernels::arena& scratch, const memory::global_cache& cache,
                          std::uint32_t entries);
/// The index keys of the first `visible` positions inside the pool: block by block, or one by one
/// where a block may cross the end of a page.
model::index_keys pool_keys(kernels::arena& scratch, const memory::global_cache& cache,
                            const kernels::candidate_pool& pool, std::uint32_t visible);

}  // namespace cedar::stage
