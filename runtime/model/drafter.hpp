// The drafter (DSpark): proposes the tokens after the newest one, a block of B positions at once.
//
// Source: DeepSeek-V4.1-Flash reference code (the blocks `mtp.*`) and the DSpark paper.
// 1. Context. A backbone row at position t gives M = RMSNorm(main_proj * [taps]; main_norm), where
//    the tap of a target layer is bf16(mean of its incoming streams). Every block makes a window
//    entry of its own from the same M: RMSNorm(wkv * M; kv_norm), rotated at t, FP8.
// 2. Block. When rows up to p are known and token y stands at p + 1, the block's rows are [y,
// noise,
//    noise, ...] at positions p+1 .. p+B. Each of them sees the entries of the last W positions up
//    to p and all B rows of its block, in both directions. A block leaves no entry behind.
// 3. Heads. With g_i the collapsed row i and e_i = markov_embedding[z_i], z_0 = y:
//      u_i = head * RMSNorm(g_i; norm) + markov_head * e_i                      fp32
//      z_{i+1} is chosen from u_i: the token of position p + 2 + i
//      c_i = sigmoid(confidence * [g_i ; e_i]): P(z_{i+1} is accepted | all before it were)
// The state between drafts (windows by request) is runtime/stage's.
#pragma once

#include <functional>

#include "runtime/base/ids.hpp"
#include "runtime/model/context.hpp"
#include "runtime/model/hyper_connection.hpp"
#include "runtime/model/weights.hpp"

namespace cedar::model {

/// What a target layer gives the drafter: bf16(mean of the streams) [n, d] of the layer's input
/// [n, s*d], after Engram. The sum is ascending in fp32, times 1/s.
kernels::matrix_view<kernels::bf16> make_tap(const context& c,
                                             kernels::matrix_view<const kernels::bf16> streams);

/// M [n, d] of n backbone rows. `taps` [n, targets * d]: those of the target layers, ascending,
/// side by side. Each block's entries are make_window_entries() of it, quantised, at ratio 0.
kernels::matrix_view<kernels::bf16> combine_taps(const context& c, const drafter_weights& weights,
                                                 kernels::matrix_view<const kernels::bf16> taps);

/// Context entries that a request's rows see, ascending by position.
using draft_context = std::span<const std::byte* const>;

/// Block number `block` over the rows of `contexts.size()` requests, B rows each, one request after
/// the other. Intermediates are offered as those of layer config.layers + block.
void run_draft_block(const context& c, std::uint32_t block, const layer_weights& weights,
                     std::span<const draft_context> contexts, const residual& in,
                     const residual_out& out);

/// Chooses a token from the logits [vocabulary] of row `position` (it would stand at position + 1)
/// of request number `request` of the call.
using draft_choice = std::function<token_id(std::size_t request, std::uint32_t position,
                                            std::span<const float> logits)>;

struct draft_token {
  token_id token = 0;
  float confidence_logit = 0;  ///< before the sigmoid: what a calibration divides

  friend bool operator==(const draft_token&, const draft_token&) = default;
};

/// The sigmoid of a draft's confidence, computed alike on every machine.
float confidence_of(float logit);

/// Both heads over the rows that left the last block. `newest` [requests]: y of each. `tokens`
/// [requests, B] receives the proposals.
void run_draft_heads(const context& c, const drafter_weights& weights, const residual& last,
                     std::span<const token_id> newest, const draft_choice& choose,
                     kernels::matrix_view<draft_token> tokens);

}  // namespace cedar::model
