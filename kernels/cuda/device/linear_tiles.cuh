// Tiles of a linear layer: how they come to shared memory, and the product of a block of 32
// columns.
//
// Weights are the operand a of the matrix units (16 outputs), rows of x the operand b (8 rows): few
// rows then waste little. Quantised rows multiply E4M3 codes with E4M3 codes (E2M1 weights are
// decoded to them, exactly), a block of 32 from zero, and the sum is scaled when it is added; bf16
// rows multiply bf16 numbers (E4M3 weights are decoded and scaled to them, exactly).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/formats.cuh"
#include "kernels/cuda/device/sum_order.cuh"
#include "kernels/cuda/device/views.cuh"

namespace cedar::kernels::cuda {

/// Columns that share a scale.
inline constexpr unsigned block_columns = 32;
inline constexpr unsigned copy_bytes = 16;

/// What is multiplied. Scales are unused where a format has none.
struct linear_operands {
  global_rows<const std::uint8_t> weight;  ///< [o, bytes of k]
  global_rows<const std::uint8_t> weight_scales;  ///< [o / outputs_per_scale, k/32]
  global_rows<const std::uint8_t> rows;  ///< [n, bytes of k]
  global_rows<const std::uint8_t> row_scales;  ///< [n, k/32]
  unsigned outputs_per_scale;
  sum_order order;
};

enum class weight_format : std::uint8_t { e4m3, e2m1, bf16 };
enum class row_format : std::uint8_t { e4m3, bf16 };

CEDAR_ANYWHERE constexpr unsigned bytes_of_columns(weight_format format, unsigned columns) {
  return format == weight_format::bf16   ? 2 * columns
         : format == weight_format::e4m3 ? columns
                                         : columns / 2;
}
CEDAR_ANYWHERE constexpr unsigned bytes_of_columns(row_format format, unsigned columns) {
  return format == row_format::bf16 ? 2 * columns : columns;
}

/// Rows of a chunk in shared memory lie 16 bytes further apart than they are long, so that eight
/// rows of a fragment meet different banks.
template <auto Format>
inline constexpr unsigned chunk_bytes = bytes_of_columns(Format, plan::chunk_columns);
template <auto Format>
inline constexpr unsigned chunk_pitch = chunk_bytes<Format> + copy_bytes;

/// Bytes of a chunk of `rows` rows in shared memory.
template <auto Format>
CEDAR_ANYWHERE constexpr unsigned tile_bytes(unsigned rows) {
  return rows * chunk_pitch<Format>;
}

/// What a tile starts with, and who brings it.
struct tile_source {
  const global_rows<const std::uint8_t>& from;
  unsigned first_row;
  unsigned first_column;
  unsigned end_column;  ///< zeros follow
};

/// Brings a chunk of `Rows` rows to shared memory: `thread` of `threads` does its share,
/// asynchronously where rows are aligned. Rows and columns beyond the source become zeros.
template <auto Format, unsigned Rows>
CEDAR_DEVICE void bring_tile(const shared_array<std::uint8_t>& tile, const tile_source& source,
                             unsigned thread, unsigned threads) {
  constexpr unsigned pieces = chunk_bytes<Format> / copy_bytes;
  const unsigned end = bytes_of_columns(Format, source.end_column);
  for (unsigned i = thread; i < Rows * pieces; i += threads) {
    const unsigned row = source.first_row + i / pieces;
    const unsigned byte = bytes_of_columns(Format, source.first_column) + i % pieces * copy_bytes;
    const unsigned to = i / pieces * chunk_pitch<Format> + i % pieces * copy_bytes;
    const bool inside = row < source.from.rows && byte < end;
    const unsigned left = inside ? end - byte : 0;
    const unsigned valid = left < copy_bytes ? left : copy_bytes;
    const std::uint8_t* from = inside ? source.from.at(row, byte, valid) : source.from.data;
    if (valid == 0 || is_aligned(from, copy_bytes)) {
      copy_async<copy_bytes>(tile, to, from, valid);
      continue;
    }
    for (unsigned b = 0; b < copy_bytes; ++b)
      tile.store(to + b, b < valid ? from[b] : std::uint8_t{0});
  }
}

/// Registers of operand a for a block: E4M3 codes of 32 columns.
template <weight_format Format>
CEDAR_DEVICE void load_codes(std::uint32_t (&a)[4], const shared_array<std::uint8_t>& tile,
                             unsigned block) {
  const unsigned lane = lane_index();
  constexpr unsigned pitch = chunk_pitch<Format>;
  if constexpr (Format == weight_format::e4m3) {
    load_matrices<4>(a, tile, lane % 16 * pitch + block * 32 + lane / 16 * 16);
  } else {
    for (unsigned r = 0; r < 4; ++r) {
      const unsigned row = lane / 4 + r % 2 * 8;
      const unsigned byte = block * 16 + lane % 4 * 2 + r / 2 * 8;
      a[r] = e4m3_of_e2m1(tile.load_as<std::uint16_t>(row * pitch + byte));
    }
  }
}

/// Registers of operand a for half a block: bf16 numbers of 16 columns. `scale` is that of E4M3
/// weights.
template <weight_format Format>
CEDAR_DEVICE void load_halves(std::uint32_t (&a)[4], const shared_array<std::uint8_t>& tile,
                              unsigned block, unsigned half, float scale) {
  const unsigned lane = lane_index();
  constexpr unsigned pitch = chunk_pitch<Format>;
  if constexpr (Format == weight_format::bf16) {
    load_matrices<4>(a, tile, lane % 16 * pitch + block * 64 + half * 32 + lane / 16 * 16);
  } else {
    for (unsigned r = 0; r < 4; ++r) {
      const unsigned row = lane / 4 + r % 2 * 8;
      const unsigned byte = block * 32 + half * 16 + lane % 4 * 2 + r / 2 * 8;
      const std::uint32_t codes = tile.load_as<std::uint16_t>(row * pitch + byte);
      a[r] = pack_exact(decode_e4m3(codes & 0xffU) * scale, decode_e4m3(codes >> 8) * scale);
    }
  }
}

/// Scale of a row and column block; 1 beyond the rows, whose elements are zeros.
CEDAR_DEVICE float scale_at(const global_rows<const std::uint8_t>& scales, unsigned row,
                            unsigned block) {
  return row < scales.rows ? decode_e8m0(scales.load(row, block)) : 1.0F;
}

/// Where a warp's part of the result begins: 16 outputs from `output`, 8 * Tiles rows from `row`.
struct warp_place {
  unsigned output;
  unsigned row;
};

/// A warp's sums: fragment t holds outputs lane / 4 and + 8 of rows 8t + 2 * (lane % 4) and + 1.
template <unsigned Tiles>
using warp_sums = float[Tiles][4];

/// Adds the products of block `block` of a chunk that begins at `column`, in E4M3.
template <weight_format Weights, unsigned Tiles>
CEDAR_DEVICE void add_quantised(warp_sums<Tiles>& sums, const shared_array<std::uint8_t>& weights,
                                const shared_array<std::uint8_t>& rows, const linear_operands& in,
                                warp_place at, unsigned column, unsigned block) {
  const unsigned lane = lane_index(), group = lane / 4;
  const unsigned scale_block = column / block_columns + block;
  std::uint32_t a[4];
  load_codes<Weights>(a, weights, block);
  const float upper =
      scale_at(in.weight_scales, (at.output + group) / in.outputs_per_scale, scale_block);
  const float lower =
      scale_at(in.weight_scales, (at.output + group + 8) / in.outputs_per_scale, scale_block);
  for (unsigned t = 0; t < Tiles; ++t) {
    if (at.row + 8 * t >= in.rows.rows) return;
    std::uint32_t b[2];
    load_matrices<2>(
        b, rows,
        (8 * t + lane % 8) * chunk_pitch<row_format::e4m3> + block * 32 + lane / 8 % 2 * 16);
    float products[4] = {};
    multiply_e4m3(products, a, b);
    const unsigned row = at.row + 8 * t + lane % 4 * 2;
    const float left = scale_at(in.row_scales, row, scale_block);
    const float right = scale_at(in.row_scales, row + 1, scale_block);
    sums[t][0] = fused(products[0] * upper, left, sums[t][0]);
    sums[t][1] = fused(products[1] * upper, right, sums[t][1]);
    sums[t][2] = fused(products[2] * lower, left, sums[t][2]);
    sums[t][3] = fused(products[3] * lower, right, sums[t][3]);
  }
}

/// The same in bf16.
template <weight_format Weights, unsigned Tiles>
CEDAR_DEVICE void add_plain(warp_sums<Tiles>& sums, const shared_array<std::uint8_t>& weights,
                            const shared_array<std::uint8_t>& rows, const linear_operands& in,
                            warp_place at, unsigned column, unsigned block) {
  const unsigned lane = lane_index();
  float scale = 1;  // of all 16 outputs: they lie within 32
  if constexpr (Weights == weight_format::e4m3)
    scale = scale_at(in.weight_scales, at.output / in.outputs_per_scale,
                     column / block_columns + block);
  std::uint32_t a[2][4];
  for (unsigned half = 0; half < 2; ++half)
    load_halves<Weights>(a[half], weights, block, half, scale);
  for (unsigned t = 0; t < Tiles; ++t) {
    if (at.row + 8 * t >= in.rows.rows) return;
    for (unsigned half = 0; half < 2; ++half) {
      std::uint32_t b[2];
      load_matrices<2>(b, rows,
                       (8 * t + lane % 8) * chunk_pitch<row_format::bf16> + block * 64 + half * 32 +
                           lane / 8 % 2 * 16);
      multiply_bf16(sums[t], a[half], b);
    }
  }
}

/// Adds the products of the chunk that `walk` stands at.
template <weight_format Weights, row_format Rows, unsigned Tiles>
CEDAR_DEVICE void add_chunk(warp_sums<Tiles>& sums, const shared_array<std::uint8_t>& weights,
                            const shared_array<std::uint8_t>& rows, const linear_operands& in,
                            warp_place at, unsigned column, unsigned end) {
  for (unsigned block = 0; block < plan::chunk_columns / block_columns; ++block) {
    if (column + block * block_columns >= end) return;
    if constexpr (Rows == row_format::e4m3)
      add_quantised<Weights, Tiles>(sums, weights, rows, in, at, column, block);
    else
      add_plain<Weights, Tiles>(sums, weights, rows, in, at, column, block);
  }
}

}  // namespace cedar::kernels::cuda
