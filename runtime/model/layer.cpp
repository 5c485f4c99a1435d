#include "runtime/model/layer.hpp"

#include "runtime/model/compressor.hpp"

namespace cedar::model {

using kernels::bf16;
using kernels::matrix_view;

namespace {

std::uint32_t as_u32(std::size_t value) {
  return static_cast<std::uint32_t>(value);
}

void offer_coefficients(const context& c, std::uint32_t layer, const char* pre, const char* post,
                        const char* comb, const sublayer_frame& frame) {
  c.probes.offer(layer, pre, matrix_view<const float>(frame.next_pre));
  c.probes.offer(layer, post, matrix_view<const float>(frame.post));
  c.probes.offer(layer, comb, matrix_view<const float>(frame.combine),
                 {as_u32(c.rows()), c.config.streams, c.config.streams});
}

void offer_streams(const context& c, std::uint32_t layer, const char* name,
                   matrix_view<const bf16> streams) {
  c.probes.offer(layer, name, streams, {as_u32(c.rows()), c.config.streams, c.config.width});
}

}  // namespace

opened_attention open_attention(const context& c, std::uint32_t layer,
                                const attention_weights& weights, const residual& in,
                                const sublayer_frame& frame, std::uint32_t ratio) {
  opened_attention out;
  out.in = in;
  out.frame = frame;
  offer_streams(c, layer, "in.stream", in.streams);
  c.probes.offer(layer, "in.pre_mix", in.pre);
  offer_coefficients(c, layer, "hc_attn.pre", "hc_attn.post", "hc_attn.comb", out.frame);
  c.probes.offer(layer, "attn.in", out.frame.x);
  const projected_input projected = project_input(c, weights, out.frame.quantized);
  out.query = project_query(c, weights, projected.query, ratio);
  c.probes.offer(layer, "attn.qr", out.query.compressed);
  c.probes.offer(layer, "attn.q", out.query.q,
                 {as_u32(c.rows()), c.config.heads, c.config.head_dim});
  out.own = make_window_entries(c, weights, matrix_view<const bf16>(projected.latent), ratio);
  offer_entries(c, layer, "attn.window_kv", out.own, window_entry_format, c.config.head_dim);
  return out;
}

void close_attention(const context& c, std::uint32_t layer, const attention_weights& weights,
                     const opened_attention& opened,
                     std::span<const kernels::attention_entries> entries, std::uint32_t ratio,
                     const residual_out& out, const following_sublayer* next) {
  const auto y = attend(c, layer, weights, opened.query, entries, ratio);
  c.probes.offer(layer, "attn.out", y);
  end_sublayer(c, opened.frame, opened.in, y, out, next);
  offer_streams(c, layer, "mid.stream", out.streams);
}

opened_moe open_moe_sublayer(const context& c, std::uint32_t layer, const moe_weights& weights,
                             const sublayer_frame& frame,
                             matrix_view<const std::int32_t> forced_experts) {
  offer_coefficients(c, layer, "hc_ffn.pre", "hc_ffn.post", "hc_ffn.comb", frame);
  c.probes.offer(layer, "ffn.in", frame.x);
  return open_moe(c, layer, weights, frame.x, forced_experts);
}

void close_moe_sublayer(const context& c, std::uint32_t layer, const opened_moe& opened,
                        const sublayer_frame& frame, const residual& in, const residual_out& out,
                        const following_sublayer* next) {
  const auto y = close_moe(c, opened);
  c.probes.offer(layer, "ffn.out", y);
  end_sublayer(c, frame, in, y, out, next);
  offer_streams(c, layer, "out.stream", out.streams);
}

void run_moe_sublayer(const context& c, std::uint32_t layer, const moe_weights& weights,
                      const sublayer_frame& frame, const residual& in, const residual_out& out,
                      const following_sublayer* next,
                      matrix_view<const std::int32_t> forced_experts) {
  const kernels::arena::mark scope(c.scratch);
  const opened_moe opened = open_moe_sublayer(c, layer, weights, frame, forced_experts);
  run_moe_here(c, weights, frame.quantized, opened);
  close_moe_sublayer(c, layer, opened, frame, in, out, next);
}

}  // namespace cedar::model
