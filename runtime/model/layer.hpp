// The two sublayers of a layer over rows whose entries are known: the same for the backbone's
// layers and for draft blocks.
//
// Attention comes in two halves, because between them its owner of state decides which entries each
// row sees. Intermediates are offered under the names of the golden traces.
#pragma once

#include "runtime/model/attention.hpp"
#include "runtime/model/context.hpp"
#include "runtime/model/hyper_connection.hpp"
#include "runtime/model/moe.hpp"
#include "runtime/model/weights.hpp"

namespace cedar::model {

/// An attention sublayer before it attends: what its rows compute from themselves. Views into the
/// context's scratch.
struct opened_attention {
  residual in;
  sublayer_frame frame;
  projected_query query;
  kernels::matrix_view<std::byte> own;  ///< [n, entry_bytes(window_entry_format, hd)]
};

/// A layer's sublayer of its weights, to be begun in `frame`.
template <class Weights>
following_sublayer sublayer_of(const Weights& weights, const sublayer_frame& frame) {
  return {weights.hc, weights.norm, frame};
}

/// Query and window entries of the rows `in` at the context's positions, of the sublayer that was
/// begun with them in `frame`.
opened_attention open_attention(const context& c, std::uint32_t layer,
                                const attention_weights& weights, const residual& in,
                                const sublayer_frame& frame, std::uint32_t ratio);

/// Attends to `entries` [n] and writes the sublayer's result (out.streams may be the memory of the
/// streams that it was opened with); begins `next`, if there is one.
void close_attention(const context& c, std::uint32_t layer, const attention_weights& weights,
                     const opened_attention& opened,
                     std::span<const kernels::attention_entries> entries, std::uint32_t ratio,
                     const residual_out& out, const following_sublayer* next);

/// A MoE sublayer in two halves, like attention: between them run_moe_here() computes, and the
/// outputs of experts elsewhere are put (moe.hpp). `forced_experts` as open_moe() takes them.
opened_moe open_moe_sublayer(const context& c, std::uint32_t layer, const moe_weights& weights,
                             const sublayer_frame& frame,
                             kernels::matrix_view<const std::int32_t> forced_experts = {});
/// Ends the sublayer that was begun with `in` in `frame`; begins `next`, if there is one.
void close_moe_sublayer(const context& c, std::uint32_t layer, const opened_moe& opened,
                        const sublayer_frame& frame, const residual& in, const residual_out& out,
                        const following_sublayer* next);
/// All of it, where every expert is here. Releases its scratch.
void run_moe_sublayer(const context& c, std::uint32_t layer, const moe_weights& weights,
                      const sublayer_frame& frame, const residual& in, const residual_out& out,
                      const following_sublayer* next,
                      kernels::matrix_view<const std::int32_t> forced_experts = {});

}  // namespace cedar::model
