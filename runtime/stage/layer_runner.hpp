// One layer over the rows of a step: the order of the parts, and their meeting with sequence state.
//
// The arithmetic is runtime/model's; this file decides which entries a row sees. A query at
// position t sees window positions max(0, t - W + 1)..t (from the ring before the step, from the
// step's own rows after; none before the span's begin, in the decoder its decoder_begin) and the
// global entries of complete groups, 0..floor((t + 1) / r) - 1.
#pragma once

#include <optional>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/model/compressor.hpp"
#include "runtime/model/context.hpp"
#include "runtime/model/indexer.hpp"
#include "runtime/model/layer.hpp"
#include "runtime/model/schedule.hpp"
#include "runtime/model/weights.hpp"
#include "runtime/stage/step_rows.hpp"

namespace cedar::stage {

/// An attention sublayer between its two halves: everything is computed that the choice of global
/// entries needs, and the choice is made, or asked for. Views into the context's scratch.
struct attention_half {
  model::opened_attention rows;
  const selection* chosen = nullptr;  ///< of the layer's index source; null: window only
  std::optional<model::index_query> query{};  ///< by which indexers will choose for this source
};

class layer_runner {
 public:
  /// All references must outlive the runner. `new_keys`: indexers hold the index keys of the
  /// layer's owner; those of new entries go there, [entries, bytes] in the order of the rows. Null:
  /// they are in the sequences.
  layer_runner(const model::model_config& config, const model::schedule& schedule,
               std::uint32_t layer, const model::layer_weights& weights,
               std::vector<std::byte>* new_keys = nullptr)
      : config_(config),
        schedule_(schedule[layer]),
        in_decoder_(layer >= schedule.decoder_begin()),
        layer_(layer),
        weights_(weights),
        new_keys_(new_keys) {}

  /// Where the layer does not follow another in one pass over the streams: Engram, if it has a
  /// module, writes to `out` (out.streams may be in.streams' memory), and the attention sublayer is
  /// begun in `frame`. Returns the rows that it was begun with. `in` and `out` hold rows.count()
  /// rows.
  model::residual open(const model::context& c, const step_rows& rows, const model::residual& in,
                       const model::residual_out& out, const model::sublayer_frame& frame) const;

  /// Creates the global entries of an owner from all rows of a step, of which only some will walk
  /// the layer. Then begin_attention() must be told that they exist.
  result<void> make_global(const model::context& c, const step_rows& rows,
                           const model::residual& in) const;
  /// The attention sublayer of rows `in`, begun in `frame`, in two halves: between them the entries
  /// of `chosen` may be fetched from an owner elsewhere (selections.gathered). The caller keeps the
  /// scratch of the first half. Writes the rows' window KV and, at an owner, its new global entries
  /// into the sequences (visible as *written*; sequence lengths are the caller's to move).
  /// errc::capacity: no free page; the caller takes the step back by truncating its sequences.
  result<attention_half> begin_attention(const model::context& c, const step_rows& rows,
                                         step_selections& selections,
                                         const selection_overrides& overrides,
                                         const model::residual& in,
                                         const model::sublayer_frame& frame,
                                         bool global_made) const;
  /// Begins the MoE sublayer in `moe_frame`.
  void end_attention(const model::context& c, const step_rows& rows,
                     const step_selections& selections, const attention_half& half,
                     const model::residual_out& out, const model::sublayer_frame& moe_frame) const;
  /// The MoE sublayer, of rows that know nothing of each other, begun in `frame`: its routing, the
  /// experts that are here, and its end, once the outputs of the others are put (model/moe.hpp).
  /// The caller keeps the scratch. The end takes the rows `in` that it was begun with, and begins
  /// the attention of the layer that follows, if it is given.
  model::opened_moe open_moe(const model::context& c, const selection_overrides& overrides,
                             const model::sublayer_frame& frame) const;
  void run_moe_here(const model::context& c, const model::sublayer_frame& frame,
                    const model::opened_moe& opened) const;
  void close_moe(const model::context& c, const model::opened_moe& opened,
                 const model::sublayer_frame& frame, const model::residual& in,
                 const model::residual_out& out, const model::following_sublayer* next) const;
  /// All of it, where every expert is here. Releases its scratch.
  void run_moe(const model::context& c, const selection_overrides& overrides,
               const model::sublayer_frame& frame, const model::residual& in,
               const model::residual_out& out, const model::following_sublayer* next) const;

 private:
  model::residual after_engram(const model::context& c, const step_rows& rows,
                               const model::residual& in,
                               kernels::matrix_view<kernels::bf16> out) const;
  result<void> create_global(const model::context& c, const step_rows& rows,
                             kernels::matrix_view<const kernels::bf16> x) const;
  result<void> create_grouped(const model::context& c, const span_rows& span,
                              const model::compressor_inputs& inputs) const;
  result<void> create_per_row(const model::context& c, const span_rows& span,
                              kernels::matrix_view<const kernels::bf16> latents) const;
  result<void> append(memory::global_cache& cache, const model::global_entries& entries) const;
  std::span<const kernels::attention_entries> visible_entries(const model::context& c,
                                                              const step_rows& rows,
                                                              const step_selections& selections,
                                                              const attention_half& half) const;
  void offer_global(const model::context& c, const step_rows& rows) const;

  const model::model_config& config_;
  const model::layer_schedule& schedule_;
  bool in_decoder_;
  std::uint32_t layer_;
  const model::layer_weights& weights_;
  std::vector<std::byte>* new_keys_;
};

}  // namespace cedar::stage
