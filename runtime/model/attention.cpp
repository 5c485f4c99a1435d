#include "runtime/model/attention.hpp"

#include <algorithm>
#include <cmath>

namespace cedar::model {

using kernels::bf16;
using kernels::entry_format;
using kernels::matrix_view;

namespace {

/// Segments of a matrix that may be split by columns: 4 where each is a multiple of 32, else 1.
std::size_t column_segments(std::size_t k) {
  return k % (4 * 32) == 0 ? 4 : 1;
}

/// A group's part of wo_a, from the whole block of 32 rows on that its first row lies in: scales
/// belong to such blocks.
struct output_group {
  std::size_t skipped = 0;  ///< rows before the group's first
  kernels::fp8_weight_view weight;
};

output_group group_of(const kernels::fp8_weight_view& wo_a, std::size_t first, std::size_t rank) {
  const std::size_t skipped = first % 32;
  const std::size_t rows = skipped + rank;
  return {skipped,
          {wo_a.codes.rows_from(first - skipped, rows),
           wo_a.scales.rows_from((first - skipped) / 32, (rows + 31) / 32)}};
}

/// z_g = wo_a[g] * o_g for every output group, side by side: [n, groups * rank].
matrix_view<bf16> project_groups(const context& c, const kernels::fp8_weight_view& wo_a,
                                 matrix_view<const bf16> o) {
  const std::size_t groups = c.config.o_groups;
  const std::size_t rank = c.config.o_rank;
  const std::size_t width = o.cols / groups;
  const auto z = c.scratch.take<bf16>(o.rows, groups * rank);
  const auto products = c.scratch.take<kernels::linear_fp8_weight_only_arguments>(1, groups).row(0);
  for (std::size_t g = 0; g < groups; ++g) {
    const output_group group = group_of(wo_a, g * rank, rank);
    const auto to = group.skipped == 0 ? z.cols_from(g * rank, rank)
                                       : c.scratch.take<bf16>(o.rows, group.skipped + rank);
    products[g] = {to, o.cols_from(g * width, width), group.weight};
  }
  c.kernels.grouped_linear_fp8_weight_only({products});
  for (std::size_t g = 0; g < groups; ++g) {
    const matrix_view<bf16>& from = products[g].y;
    if (from.cols == rank) continue;
    for (std::size_t row = 0; row < o.rows; ++row)
      std::ranges::copy(from.row(row).last(rank), z.row_data(row) + g * rank);
  }
  return z;
}

}  // namespace

projected_input project_input(const context& c, const attention_weights& weights,
                              const quantized_rows& x) {
  const std::size_t n = c.rows();
  const projected_input out{c.scratch.take<bf16>(n, c.config.q_rank),
                            c.scratch.take<bf16>(n, c.config.head_dim)};
  const kernels::linear_fp8_arguments products[] = {{out.query, x, weights.wq_a},
                                                    {out.latent, x, weights.wkv}};
  c.kernels.grouped_linear_fp8({products});
  return out;
}

projected_query project_query(const context& c, const attention_weights& weights,
                              matrix_view<const bf16> bottleneck, std::uint32_t ratio) {
  const std::size_t n = c.rows();
  projected_query out{c.scratch.take<bf16>(n, c.config.q_rank),
                      c.scratch.take<bf16>(n, std::size_t{c.config.heads} * c.config.head_dim)};
  const quantized_rows quantized = take_quantized(c.scratch, n, c.config.q_rank);
  c.kernels.rms_norm_quantize({{out.compressed, bottleneck, weights.q_norm, c.config.rms_epsilon},
                               quantized.codes,
                               quantized.scales});
  c.kernels.linear_fp8({out.q, quantized, weights.wq_b});
  c.kernels.rope({out.q, c.config.head_dim, c.positions, c.rotary.of_ratio(ratio)});
  return out;
}

matrix_view<std::byte> make_window_entries(const context& c, const attention_weights& weights,
                                           matrix_view<const bf16> latent, std::uint32_t ratio) {
  constexpr entry_format format = entry_format::fp8_e8m0_32;
  const auto rotated = c.scratch.take<bf16>(latent.rows, latent.cols);
  const auto entries =
      c.scratch.take<std::byte>(latent.rows, kernels::entry_bytes(format, latent.cols));
  c.kernels.rms_norm_entries({{rotated, latent, weights.kv_norm, c.config.rms_epsilon},
                              c.positions,
                              c.rotary.of_ratio(ratio),
                              entries,
                              format});
  return entries;
}

matrix_view<std::byte> make_window_entries(const context& c, const attention_weights& weights,
                                           const quantized_rows& x, std::uint32_t ratio) {
  const auto latent = c.scratch.take<bf16>(c.rows(), c.config.head_dim);
  c.kernels.linear_fp8({latent, x, weights.wkv});
  return make_window_entries(c, weights, matrix_view<const bf16>(latent), ratio);
}

matrix_view<bf16> attend(const context& c, std::uint32_t layer, const attention_weights& weights,
                         const projected_query& query,
                         std::span<const kernels::attention_entries> entries, std::uint32_t ratio) {
  const std::size_t n = c.rows();
  const std::size_t head_dim = c.config.head_dim;
  const auto o = c.scratch.take<bf16>(n, query.q.cols);
  c.kernels.attention({o, query.q, entries, weights.sinks, head_dim,
                       static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)))});
  c.probes.offer(layer, "attn.o_rotated", o,
                 {static_cast<std::uint32_t>(n), c.config.heads, c.config.head_dim});
  c.kernels.rope({o, head_dim, c.positions, c.rotary.of_ratio(ratio), true});

  const auto z = project_groups(c, weights.wo_a, o);
  const auto y = c.scratch.take<bf16>(n, c.config.width);
  c.kernels.linear_fp8({y, quantize(c, z), weights.wo_b, column_segments(z.cols)});
  return y;
}

}  // namespace cedar::model
