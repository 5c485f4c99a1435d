#include "runtime/model/drafter.hpp"

#include <algorithm>
#include <string>

#include "kernels/base/check.hpp"
#include "kernels/ops/elementary.hpp"
#include "runtime/model/layer.hpp"

namespace cedar::model {

using kernels::bf16;
using kernels::matrix_view;

namespace {

constexpr std::uint32_t window_ratio = 0;  // of draft blocks (config_rules)

/// What every row sees: its request's context, then the request's own rows.
std::span<const kernels::attention_entries> visible_entries(const context& c,
                                                            std::span<const draft_context> contexts,
                                                            matrix_view<const std::byte> own) {
  const std::size_t block = c.config.dspark.block_size;
  const auto entries = c.scratch.take<kernels::attention_entries>(1, own.rows);
  for (std::size_t request = 0; request < contexts.size(); ++request) {
    const draft_context known = contexts[request];
    const auto pointers = c.scratch.take<const std::byte*>(1, known.size() + block);
    std::ranges::copy(known, pointers.data);
    for (std::size_t i = 0; i < block; ++i)
      pointers.data[known.size() + i] = own.row_data(request * block + i);
    std::fill_n(entries.data + request * block, block,
                kernels::attention_entries{pointers.row(0), {}});
  }
  return entries.row(0);
}

/// head * RMSNorm(g; norm): [n, vocabulary].
matrix_view<float> base_logits(const context& c, const drafter_weights& weights,
                               matrix_view<const bf16> collapsed) {
  const auto normed = c.scratch.take<bf16>(collapsed.rows, collapsed.cols);
  c.kernels.rms_norm({normed, collapsed, weights.norm, c.config.rms_epsilon});
  const auto logits = c.scratch.take<float>(collapsed.rows, c.config.vocabulary);
  c.kernels.linear_f32({logits, normed, weights.head});
  return logits;
}

/// One place of the chain for all requests: [g_i ; e_i] of each, the Markov head's part of the
/// logits, the confidence.
struct chain_link {
  matrix_view<float> bias;  ///< [requests, vocabulary]
  matrix_view<float> confidence;  ///< [requests, 1]
};

chain_link run_link(const context& c, const drafter_weights& weights,
                    matrix_view<const bf16> collapsed, std::size_t place,
                    std::span<const token_id> before) {
  const std::size_t requests = before.size();
  const std::size_t block = c.config.dspark.block_size;
  const std::size_t width = c.config.width;
  const std::size_t rank = c.config.dspark.markov_rank;
  const auto joined = c.scratch.take<bf16>(requests, width + rank);
  for (std::size_t request = 0; request < requests; ++request) {
    std::ranges::copy(collapsed.row(request * block + place), joined.row_data(request));
    std::ranges::copy(weights.markov_embedding.row(static_cast<std::size_t>(before[request])),
                      joined.row_data(request) + width);
  }
  chain_link out{c.scratch.take<float>(requests, c.config.vocabulary),
                 c.scratch.take<float>(requests, 1)};
  c.kernels.linear_f32({out.bias, joined.cols_from(width, rank), weights.markov_head});
  c.kernels.linear_f32({out.confidence, joined, weights.confidence});
  return out;
}

}  // namespace

matrix_view<bf16> make_tap(const context& c, matrix_view<const bf16> streams) {
  const auto pre = c.scratch.take<float>(streams.rows, c.config.streams);
  std::fill_n(pre.data, pre.rows * pre.cols, 1.0F / static_cast<float>(c.config.streams));
  const auto tap = c.scratch.take<bf16>(streams.rows, c.config.width);
  c.kernels.hc_collapse({tap, streams, pre});
  return tap;
}

matrix_view<bf16> combine_taps(const context& c, const drafter_weights& weights,
                               matrix_view<const bf16> taps) {
  const auto projected = c.scratch.take<bf16>(taps.rows, c.config.width);
  c.kernels.linear_fp8({projected, quantize(c, taps), weights.main_proj});
  const auto combined = c.scratch.take<bf16>(taps.rows, c.config.width);
  c.kernels.rms_norm({combined, projected, weights.main_norm, c.config.rms_epsilon});
  c.probes.offer("dspark.main_x", combined);
  return combined;
}

void run_draft_block(const context& c, std::uint32_t block, const layer_weights& weights,
                     std::span<const draft_context> contexts, const residual& in,
                     const residual_out& out) {
  const std::uint32_t layer = c.config.layers + block;
  const kernels::arena::mark scope(c.scratch);
  const auto attention = sublayer_of(weights.attention, take_frame(c.scratch, c.config, c.rows()));
  const auto moe = sublayer_of(weights.moe, take_frame(c.scratch, c.config, c.rows()));
  begin_sublayer(c, attention, in);
  {
    const kernels::arena::mark inner(c.scratch);
    const auto opened =
        open_attention(c, layer, weights.attention, in, attention.frame, window_ratio);
    const auto entries = visible_entries(c, contexts, opened.own);
    close_attention(c, layer, weights.attention, opened, entries, window_ratio, out, &moe);
  }
  run_moe_sublayer(c, layer, weights.moe, moe.frame, {out.streams, out.pre}, out, nullptr);
}

float confidence_of(float logit) {
  const double power = kernels::natural_exp(logit < 0 ? logit : -logit);
  return static_cast<float>((logit < 0 ? power : 1.0) / (1.0 + power));
}

void run_draft_heads(const context& c, const drafter_weights& weights, const residual& last,
                     std::span<const token_id> newest, const draft_choice& choose,
                     matrix_view<draft_token> tokens) {
  const std::size_t block = c.config.dspark.block_size;
  const auto collapsed = c.scratch.take<bf16>(last.streams.rows, c.config.width);
  c.kernels.hc_collapse({collapsed, last.streams, last.pre});
  const auto logits = base_logits(c, weights, collapsed);
  const auto before = c.scratch.take<token_id>(1, newest.size());
  std::ranges::copy(newest, before.data);
  for (std::size_t place = 0; place < block; ++place) {
    const kernels::arena::mark scope(c.scratch);
    const chain_link link = run_link(c, weights, collapsed, place, before.row(0));
    for (std::size_t request = 0; request < newest.size(); ++request) {
      const std::size_t row = request * block + place;
      const std::span<float> corrected = logits.row(row);
      std::ranges::transform(corrected, link.bias.row(request), corrected.begin(), std::plus<>());
      const auto position = static_cast<std::uint32_t>(c.positions[row]);
      const token_id token = choose(request, position, corrected);
      CEDAR_REQUIRE(token >= 0 && static_cast<std::uint32_t>(token) < c.config.vocabulary,
                    "a draft chose token " + std::to_string(token) + " of no vocabulary");
      tokens.row(request)[place] = {token, link.confidence.row(request)[0]};
      before.data[request] = token;
    }
  }
}

}  // namespace cedar::model
