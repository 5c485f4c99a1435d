// Tiles of a linear layer, and how they come to shared memory: chunks of 64 columns by asynchronous
// copies, the scales of a slice decoded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/formats.cuh"
#include "kernels/cuda/device/sum_order.cuh"
#include "kernels/cuda/device/views.cuh"
#include "kernels/ops/arguments.hpp"

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

/// Outputs that share a scale, of FP8 weights.
inline constexpr unsigned outputs_per_fp8_scale = 32;

CEDAR_ANYWHERE linear_operands operands_of(const linear_fp8_arguments& of) {
  return {bytes_of(of.weight.codes),
          bytes_of(of.weight.scales),
          bytes_of(of.x.codes),
          bytes_of(of.x.scales),
          outputs_per_fp8_scale,
          {static_cast<unsigned>(of.x.codes.cols), static_cast<unsigned>(of.segments)}};
}
CEDAR_ANYWHERE linear_operands operands_of(const linear_fp4_arguments& of) {
  return {bytes_of(of.weight.codes),
          bytes_of(of.weight.scales),
          bytes_of(of.x.codes),
          bytes_of(of.x.scales),
          1,
          {static_cast<unsigned>(of.x.codes.cols), static_cast<unsigned>(of.segments)}};
}
CEDAR_ANYWHERE linear_operands operands_of(const linear_fp8_weight_only_arguments& of) {
  return {bytes_of(of.weight.codes), bytes_of(of.weight.scales),        bytes_of(of.x), {},
          outputs_per_fp8_scale,     {static_cast<unsigned>(of.x.cols)}};
}

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

/// What a tile starts with.
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

/// Blocks of a slice. Rows of scales in shared memory are odd, so that neighbours meet different
/// banks.
inline constexpr unsigned slice_blocks = plan::slice_columns / block_columns;
inline constexpr unsigned scale_pitch = slice_blocks + 1;

/// Where scales of `rows` rows from `first_row` on come from; `rows_per_scale` of them share one.
struct scale_source {
  const global_rows<const std::uint8_t>& from;
  unsigned first_row;
  unsigned rows;
  unsigned rows_per_scale;
};

/// Brings the scales of a slice to shared memory, 1 for rows beyond the source: `thread` of
/// `threads` does its share.
CEDAR_DEVICE void bring_scales(const shared_array<float>& to, const scale_source& source,
                               const slice& part, unsigned thread, unsigned threads) {
  const unsigned blocks = (part.end - part.first) / block_columns;
  for (unsigned i = thread; i < source.rows * blocks; i += threads) {
    const unsigned row = (source.first_row + i / blocks) / source.rows_per_scale;
    const unsigned block = part.first / block_columns + i % blocks;
    const bool inside = row < source.from.rows;
    to.store(i / blocks * scale_pitch + i % blocks,
             inside ? decode_e8m0(source.from.load(row, block)) : 1.0F);
  }
}

}  // namespace cedar::kernels::cuda
