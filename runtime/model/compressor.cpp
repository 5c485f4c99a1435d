#include "runtime/model/compressor.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"

namespace cedar::model {

using kernels::bf16;
using kernels::matrix_view;

compressor_inputs project_compressor(const context& c, const compressor_weights& weights,
                                     matrix_view<const bf16> x) {
  CEDAR_REQUIRE(weights.wgate.has_value(), "a compressor of ratio >= 2 needs wgate");
  compressor_inputs out{c.scratch.take<float>(x.rows, c.config.head_dim),
                        c.scratch.take<float>(x.rows, c.config.head_dim)};
  c.kernels.linear_f32({out.values, x, weights.wkv});
  c.kernels.linear_f32({out.gates, x, *weights.wgate});
  return out;
}

matrix_view<bf16> pool_groups(const context& c, const compressor_weights& weights,
                              const compressor_inputs& members, std::uint32_t ratio) {
  const std::size_t groups = members.values.rows / ratio;
  const auto z = c.scratch.take<bf16>(groups, c.config.head_dim);
  c.kernels.compressor_pool({z, members.values, members.gates, ratio});
  const auto latents = c.scratch.take<bf16>(groups, c.config.head_dim);
  c.kernels.rms_norm({latents, z, weights.norm, c.config.rms_epsilon});
  return latents;
}

matrix_view<bf16> latents_of_rows(const context& c, const compressor_weights& weights,
                                  matrix_view<const bf16> x) {
  const auto projected = c.scratch.take<bf16>(x.rows, c.config.head_dim);
  c.kernels.linear_bf16({projected, x, weights.wkv});
  const auto latents = c.scratch.take<bf16>(x.rows, c.config.head_dim);
  c.kernels.rms_norm({latents, projected, weights.norm, c.config.rms_epsilon});
  return latents;
}

namespace {

/// RMSNorm(wk * latent), rotated at the group's first position, packed.
matrix_view<std::byte> make_index_keys(const context& c, const indexer_weights& indexer,
                                       matrix_view<const bf16> latents,
                                       std::span<const std::int32_t> first_positions) {
  CEDAR_REQUIRE(indexer.wk.has_value(), "an owner of index keys needs indexer.wk");
  const std::size_t width = c.config.index_head_dim;
  const auto projected = c.scratch.take<bf16>(latents.rows, width);
  c.kernels.linear_bf16({projected, latents, *indexer.wk});
  const auto keys = c.scratch.take<bf16>(latents.rows, width);
  const auto packed =
      c.scratch.take<std::byte>(latents.rows, kernels::entry_bytes(index_entry_format, width));
  c.kernels.rms_norm_entries({{keys, projected, indexer.k_norm, c.config.rms_epsilon},
                              first_positions,
                              c.rotary.compressed,
                              packed,
                              index_entry_format});
  return packed;
}

}  // namespace

global_entries make_global_entries(const context& c, std::uint32_t layer,
                                   const indexer_weights& indexer, matrix_view<const bf16> latents,
                                   std::span<const std::int32_t> first_positions) {
  const std::size_t width = c.config.head_dim;
  c.probes.offer(layer, "attn.latent", latents);
  global_entries out;
  out.index_keys = make_index_keys(c, indexer, latents, first_positions);
  const auto rotated = c.scratch.take<bf16>(latents.rows, width);
  for (std::size_t row = 0; row < latents.rows; ++row)
    std::ranges::copy(latents.row(row), rotated.row_data(row));
  c.kernels.rope({rotated, width, first_positions, c.rotary.compressed});
  out.main =
      c.scratch.take<std::byte>(latents.rows, kernels::entry_bytes(global_entry_format, width));
  c.kernels.pack_entries({rotated, out.main, global_entry_format});
  return out;
}

}  // namespace cedar::model
