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

/// Rows [first, first + z.cols) of wo_a times x. Scales belong to blocks of 32 rows of the whole
/// matrix: a group that begins inside a block is computed from the block's first row on.
void project_group(const context& c, const kernels::fp8_weight_view& wo_a, std::size_t first,
                   matrix_view<const bf16> x, matrix_view<bf16> z) {
  const std::size_t skipped = first % 32;
  const std::size_t rows = skipped + z.cols;
  const kernels::fp8_weight_view group{
      wo_a.codes.rows_from(first - skipped, rows),
      wo_a.scales.rows_from((first - skipped) / 32, (rows + 31) / 32)};
  if (skipped == 0) return c.kernels.linear_fp8_weight_only({z, x, group});
  const auto whole = c.scratch.take<bf16>(x.rows, rows);
  c.kernels.linear_fp8_weight_only({whole, x, group});
  for (std::size_t row = 0; row < x.rows; ++row)
    std::ranges::copy(whole.row(row).subspan(skipped), z.row_data(row));
}

/// z_g = wo_a[g] * o_g for every output group, side by side: [n, groups * rank].
matrix_view<bf16> project_groups(const context& c, const kernels::fp8_weight_view& wo_a,
                                 matrix_view<const bf16> o) {
  const std::size_t groups = c.config.o_groups;
  const std::size_t rank = c.config.o_rank;
  const std::size_t width = o.cols / groups;
  const auto z = c.scratch.take<bf16>(o.rows, groups * rank);
  for (std::size_t g = 0; g < groups; ++g)
    project_group(c, wo_a, g * rank, o.cols_from(g * width, width), z.cols_from(g * rank, rank));
  return z;
}

}  // namespace

projected_query project_query(const context& c, const attention_weights& weights,
                              const quantized_rows& x, std::uint32_t ratio) {
  const std::size_t n = c.rows();
  const auto bottleneck = c.scratch.take<bf16>(n, c.config.q_rank);
  c.kernels.linear_fp8({bottleneck, x, weights.wq_a});
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
                                           const quantized_rows& x, std::uint32_t ratio) {
  const std::size_t n = c.rows();
  const std::size_t width = c.config.head_dim;
  const auto projected = c.scratch.take<bf16>(n, width);
  c.kernels.linear_fp8({projected, x, weights.wkv});
  const auto latent = c.scratch.take<bf16>(n, width);
  c.kernels.rms_norm({latent, projected, weights.kv_norm, c.config.rms_epsilon});
  c.kernels.rope({latent, width, c.positions, c.rotary.of_ratio(ratio)});
  const auto entries =
      c.scratch.take<std::byte>(n, kernels::entry_bytes(entry_format::fp8_e8m0_32, width));
  c.kernels.pack_entries({latent, entries, entry_format::fp8_e8m0_32});
  return entries;
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
