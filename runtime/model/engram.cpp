#include "runtime/model/engram.hpp"

#include <cstring>

namespace cedar::model {

using kernels::bf16;
using kernels::entry_format;
using kernels::matrix_view;

namespace {

/// The rows of a position side by side, dequantised, for a probe.
void offer_rows(const context& c, std::uint32_t layer, matrix_view<const std::byte> entries) {
  if (!c.probes.wants(layer, "engram.rows")) return;
  const auto x = c.scratch.take<bf16>(entries.rows, c.config.engram.head_dim);
  c.kernels.unpack_entries({entries, x, entry_format::fp8_e8m0_32});
  c.probes.offer(
      layer, "engram.rows", x,
      {static_cast<std::uint32_t>(c.rows()), c.config.engram_columns(), c.config.engram.head_dim});
}

}  // namespace

std::size_t engram_row_bytes(const model_config& config) noexcept {
  return kernels::entry_bytes(entry_format::fp8_e8m0_32, config.engram.head_dim);
}

std::byte* copy_engram_row(const engram_table_weights& table, std::size_t row, std::byte* out) {
  const auto copy = [&](const auto& plane) {
    std::memcpy(out, plane.row_data(row), plane.cols);
    out += plane.cols;
  };
  copy(table.codes);
  copy(table.scales);
  return out;
}

void apply_engram(const context& c, std::uint32_t layer, const engram_weights& weights,
                  matrix_view<const std::byte> rows, matrix_view<const bf16> streams,
                  matrix_view<bf16> out) {
  const std::size_t n = c.rows();
  const std::size_t columns = c.config.engram_columns();
  const std::size_t head_dim = c.config.engram.head_dim;
  const std::size_t row_bytes = engram_row_bytes(c.config);
  const matrix_view<const std::byte> entries(rows.data, n * columns, row_bytes);
  offer_rows(c, layer, entries);
  const quantized_rows embedding = take_quantized(c.scratch, n, columns * head_dim);
  c.kernels.requantize_entries({entries,
                                {embedding.codes.data, n * columns, head_dim},
                                {embedding.scales.data, n * columns, head_dim / 32}});
  const auto key_values =
      c.scratch.take<bf16>(n, std::size_t{c.config.streams + 1} * c.config.width);
  c.kernels.linear_fp8({key_values, embedding, weights.wkv});
  c.probes.offer(layer, "engram.kv", key_values);
  const auto gates = c.scratch.take<float>(n, c.config.streams);
  c.kernels.engram_gate({out, streams, key_values, weights.q_weight, weights.k_weight, c.image_rows,
                         c.config.rms_epsilon, gates});
  c.probes.offer(layer, "engram.gate", matrix_view<const float>(gates));
}

}  // namespace cedar::model
