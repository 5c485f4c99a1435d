#include "runtime/model/engram.hpp"

namespace cedar::model {

using kernels::bf16;
using kernels::entry_format;
using kernels::matrix_view;

std::size_t engram_row_bytes(const model_config& config) noexcept {
  return kernels::entry_bytes(entry_format::fp8_e8m0_32, config.engram.head_dim);
}

void apply_engram(const context& c, std::uint32_t layer, const engram_weights& weights,
                  matrix_view<const std::byte> rows, matrix_view<const bf16> streams,
                  matrix_view<bf16> out) {
  const std::size_t n = c.rows();
  const std::size_t columns = c.config.engram_columns();
  const std::size_t head_dim = c.config.engram.head_dim;
  const std::size_t row_bytes = engram_row_bytes(c.config);
  const auto embedding = c.scratch.take<bf16>(n, columns * head_dim);
  c.kernels.unpack_entries({{rows.data, n * columns, row_bytes},
                            {embedding.data, n * columns, head_dim},
                            entry_format::fp8_e8m0_32});
  c.probes.offer(
      layer, "engram.rows", embedding,
      {static_cast<std::uint32_t>(n), c.config.engram_columns(), c.config.engram.head_dim});
  const auto key_values =
      c.scratch.take<bf16>(n, std::size_t{c.config.streams + 1} * c.config.width);
  c.kernels.linear_fp8({key_values, quantize(c, embedding), weights.wkv});
  c.probes.offer(layer, "engram.kv", key_values);
  const auto gates = c.scratch.take<float>(n, c.config.streams);
  c.kernels.engram_gate({out, streams, key_values, weights.q_weight, weights.k_weight, c.image_rows,
                         c.config.rms_epsilon, gates});
  c.probes.offer(layer, "engram.gate", matrix_view<const float>(gates));
}

}  // namespace cedar::model
