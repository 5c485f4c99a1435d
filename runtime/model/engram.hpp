// Engram at its layer: table rows in, gated value added to all residual streams.
//
// Source: DeepSeek-V4.1-Flash reference code. The rows of a position (order 2 heads, order 3 heads,
// ...) side by side, dequantised to bf16, go through one FP8 projection that gives a key per stream
// and one value; the gate compares each stream with its key.
#pragma once

#include "runtime/model/context.hpp"
#include "runtime/model/weights.hpp"

namespace cedar::model {

/// Bytes of one table row as it travels: head_dim E4M3 codes, head_dim/32 E8M0 scales.
std::size_t engram_row_bytes(const model_config& config) noexcept;

/// Copies a row of a table to `out`, as it travels: codes, then scales. Returns the byte after it.
std::byte* copy_engram_row(const engram_table_weights& table, std::size_t row, std::byte* out);

/// `rows` [n, columns * engram_row_bytes]: fetched rows. Writes streams + gate * value to `out`,
/// which may be the same memory as `streams`.
void apply_engram(const context& c, std::uint32_t layer, const engram_weights& weights,
                  kernels::matrix_view<const std::byte> rows,
                  kernels::matrix_view<const kernels::bf16> streams,
                  kernels::matrix_view<kernels::bf16> out);

}  // namespace cedar::model
