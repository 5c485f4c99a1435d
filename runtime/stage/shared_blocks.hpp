// Blocks that carry the state of Full/Reuse groups between stages (flow::row_kind names them).
//
// Rows of a block made by a decoder layer are the rows that walk the decoder, else all rows of the
// step. Everything that arrives is checked against the configuration before it is used: positions
// ascend and are visible to their row, blocks ascend and exist.
#pragma once

#include <span>
#include <vector>

#include "kernels/ops/selection.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/schedule.hpp"
#include "runtime/stage/step_rows.hpp"

namespace cedar::stage {

/// What a block of shared state belongs to.
struct shared_context {
  const model::model_config& config;
  const model::schedule& schedule;
};

/// Positions of the rows that `layer` works on, in step order.
std::vector<std::uint32_t> positions_of(std::span<const flow::row_span> spans,
                                        const model::schedule& schedule, std::uint32_t layer);

/// The step's new entries of `owner`: its main entries (`shared_kv`) or index keys (`index_keys`).
/// `rows` are all rows of the step, their entries already in the owner's caches.
flow::row_block make_entries_block(flow::row_kind kind, const shared_context& c,
                                   const flow::step_table& table, std::uint32_t owner,
                                   const step_rows& rows);
/// Chosen positions of the rows of `layer`. `kind`: selection, or gather_request (then `layer` is
/// the owner, and the caller sets the reader).
flow::row_block make_selection_block(flow::row_kind kind, const shared_context& c,
                                     const flow::step_table& table, std::uint32_t layer,
                                     const selection& chosen);
flow::row_block make_candidates_block(const shared_context& c, const flow::step_table& table,
                                      std::uint32_t layer,
                                      std::span<const kernels::candidate_pool> pools);

/// Entries of a shared_kv or index_keys block: [entries, bytes], span after span. Valid while the
/// block lives. Error malformed: not the entries that its spans complete.
result<kernels::matrix_view<const std::byte>> entries_of(const flow::row_block& block,
                                                         const shared_context& c);
/// Positions of a selection or gather_request block. Error malformed: positions that do not ascend,
/// are not visible to their row, or are not those of the step.
result<selection> selection_of(const flow::row_block& block, const shared_context& c);
/// Error malformed: blocks that do not ascend or do not exist.
result<std::vector<kernels::candidate_pool>> candidates_of(const flow::row_block& block,
                                                           const shared_context& c);

}  // namespace cedar::stage
