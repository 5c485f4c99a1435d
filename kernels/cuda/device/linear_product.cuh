// The product of a block of 32 columns, by the matrix units.
//
// Weights are their operand a (16 outputs), rows of x their operand b (8 rows): few rows then waste
// little. Quantised rows multiply E4M3 codes with E4M3 codes (E2M1 weights are decoded to them,
// exactly), a block of 32 from zero, and the sum is scaled when it is added; bf16 rows multiply
// bf16 numbers (E4M3 weights are decoded and scaled to them, exactly).
#pragma once

#include <cstdint>

#include "kernels/cuda/device/formats.cuh"
#include "kernels/cuda/device/linear_tiles.cuh"

namespace cedar::kernels::cuda {

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

/// What a warp multiplies, in shared memory: 16 rows of weights, rows of x.
struct warp_tiles {
  shared_array<std::uint8_t> weights;  ///< a chunk
  shared_array<std::uint8_t> rows;
  shared_array<float> weight_scales;  ///< of the slice
  shared_array<float> row_scales;
};

/// A block of 32 columns: within the chunk, and within the slice.
struct block_place {
  unsigned chunk;
  unsigned slice;
};

/// A warp's sums: fragment t holds outputs lane / 4 and + 8 of rows 8t + 2 * (lane % 4) and + 1.
template <unsigned Fragments>
using warp_sums = float[Fragments][4];

/// Adds the products of a block to the first `rows` rows' sums, in E4M3.
template <weight_format Weights, unsigned Fragments>
CEDAR_DEVICE void add_quantised(warp_sums<Fragments>& sums, const warp_tiles& tiles, unsigned rows,
                                block_place block) {
  const unsigned lane = lane_index(), group = lane / 4;
  std::uint32_t a[4];
  load_codes<Weights>(a, tiles.weights, block.chunk);
  const float upper = tiles.weight_scales.load(group * scale_pitch + block.slice);
  const float lower = tiles.weight_scales.load((group + 8) * scale_pitch + block.slice);
  for (unsigned t = 0; t < Fragments; ++t) {
    if (8 * t >= rows) return;
    std::uint32_t b[2];
    load_matrices<2>(
        b, tiles.rows,
        (8 * t + lane % 8) * chunk_pitch<row_format::e4m3> + block.chunk * 32 + lane / 8 % 2 * 16);
    float products[4] = {};
    multiply_e4m3(products, a, b);
    const unsigned row = 8 * t + lane % 4 * 2;
    const float left = tiles.row_scales.load(row * scale_pitch + block.slice);
    const float right = tiles.row_scales.load((row + 1) * scale_pitch + block.slice);
    sums[t][0] = fused(products[0] * upper, left, sums[t][0]);
    sums[t][1] = fused(products[1] * upper, right, sums[t][1]);
    sums[t][2] = fused(products[2] * lower, left, sums[t][2]);
    sums[t][3] = fused(products[3] * lower, right, sums[t][3]);
  }
}

/// The same in bf16.
template <weight_format Weights, unsigned Fragments>
CEDAR_DEVICE void add_plain(warp_sums<Fragments>& sums, const warp_tiles& tiles, unsigned rows,
                            block_place block) {
  const unsigned lane = lane_index();
  float scale = 1;  // of all 16 outputs: they lie within 32
  if constexpr (Weights == weight_format::e4m3) scale = tiles.weight_scales.load(block.slice);
  std::uint32_t a[2][4];
  for (unsigned half = 0; half < 2; ++half)
    load_halves<Weights>(a[half], tiles.weights, block.chunk, half, scale);
  for (unsigned t = 0; t < Fragments; ++t) {
    if (8 * t >= rows) return;
    for (unsigned half = 0; half < 2; ++half) {
      std::uint32_t b[2];
      load_matrices<2>(b, tiles.rows,
                       (8 * t + lane % 8) * chunk_pitch<row_format::bf16> + block.chunk * 64 +
                           half * 32 + lane / 8 % 2 * 16);
      multiply_bf16(sums[t], a[half], b);
    }
  }
}

/// Adds the products of the chunk at `column` of a slice; `rows` as above.
template <weight_format Weights, row_format Rows, unsigned Fragments>
CEDAR_DEVICE void add_chunk(warp_sums<Fragments>& sums, const warp_tiles& tiles, unsigned rows,
                            const slice& part, unsigned column) {
  for (unsigned i = 0; i < plan::chunk_columns / block_columns; ++i) {
    if (column + i * block_columns >= part.end) return;
    const block_place block{i, (column - part.first) / block_columns + i};
    if constexpr (Rows == row_format::e4m3)
      add_quantised<Weights, Fragments>(sums, tiles, rows, block);
    else
      add_plain<Weights, Fragments>(sums, tiles, rows, block);
  }
}

}  // namespace cedar::kernels::cuda
