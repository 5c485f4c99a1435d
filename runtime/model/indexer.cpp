#include "runtime/model/indexer.hpp"

#include <cmath>

#include "runtime/model/compressor.hpp"

namespace cedar::model {

using kernels::bf16;
using kernels::matrix_view;

namespace {

/// [n*ih, ihd] bf16 of packed queries, for a probe.
void offer_query(const context& c, std::uint32_t layer, matrix_view<const std::byte> packed) {
  if (!c.probes.wants(layer, "index.q")) return;
  const auto q = c.scratch.take<bf16>(packed.rows, c.config.index_head_dim);
  c.kernels.unpack_entries({packed, q, index_entry_format});
  c.probes.offer(
      layer, "index.q", q,
      {static_cast<std::uint32_t>(c.rows()), c.config.index_heads, c.config.index_head_dim});
}

}  // namespace

index_query make_index_query(const context& c, std::uint32_t layer, const indexer_weights& indexer,
                             matrix_view<const bf16> x, matrix_view<const bf16> compressed) {
  const std::size_t n = c.rows();
  const std::size_t heads = c.config.index_heads;
  const std::size_t width = c.config.index_head_dim;
  const auto q = c.scratch.take<bf16>(n, heads * width);
  c.kernels.linear_fp8({q, quantize(c, compressed), indexer.wq_b});
  c.kernels.rope({q, width, c.positions, c.rotary.compressed});
  index_query out{
      c.scratch.take<std::byte>(n * heads, kernels::entry_bytes(index_entry_format, width)),
      c.scratch.take<bf16>(n, heads)};
  c.kernels.pack_entries({{q.data, n * heads, width}, out.packed, index_entry_format});
  offer_query(c, layer, out.packed);

  c.kernels.linear_bf16({out.weights, x, indexer.weights_proj});
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(width)) /
                                        std::sqrt(static_cast<double>(heads)));
  for (std::size_t row = 0; row < n; ++row)
    for (bf16& weight : out.weights.row(row)) weight = kernels::to_bf16(to_float(weight) * scale);
  c.probes.offer(layer, "index.weights", out.weights);
  return out;
}

void score_row(const context& c, const index_query& query, std::size_t row, const index_keys& keys,
               std::span<bf16> scores) {
  const std::size_t heads = c.config.index_heads;
  c.kernels.index_scores({scores, query.packed.rows_from(row * heads, heads),
                          query.weights.row(row), keys.runs, c.config.index_head_dim, keys.run});
}

}  // namespace cedar::model
