// Tiles of bf16 in shared memory as operands of matrix operations, and entries dequantised into
// them.
#pragma once

#include "kernels/cuda/device/packed.cuh"
#include "kernels/cuda/device/platform.cuh"

namespace cedar::kernels::cuda {

/// Rows of bf16, `stride` apart; rows and stride as plan::attention_stride has them: sixteen bytes
/// aligned, and eight rows in different banks.
struct shared_tile {
  shared_array<bf16> elements;
  unsigned stride;

  CEDAR_DEVICE unsigned at(unsigned row, unsigned col) const { return row * stride + col; }
  CEDAR_DEVICE void store(unsigned row, unsigned col, bf16 value) const {
    elements.store(at(row, col), value);
  }
};

/// Rows [row, row + 16), columns [col, col + 16) as the left operand.
CEDAR_DEVICE void load_left(std::uint32_t (&to)[4], const shared_tile& from, unsigned row,
                            unsigned col) {
  const unsigned lane = lane_index();
  load_matrices(to, from.elements, from.at(row + lane % 16, col + lane / 16 * 8));
}

/// The right operand whose columns are rows [row, row + 8) of the tile, and whose rows are the
/// tile's columns [col, col + 16): a product with it takes dot products of rows.
CEDAR_DEVICE void load_right(std::uint32_t (&to)[2], const shared_tile& from, unsigned row,
                             unsigned col) {
  const unsigned lane = lane_index();
  load_matrices(to, from.elements, from.at(row + lane % 8, col + lane / 8 % 2 * 8));
}

/// The right operand that is the tile's rows [row, row + 16), columns [col, col + 8), as they
/// stand: a product with it mixes rows.
CEDAR_DEVICE void load_right_standing(std::uint32_t (&to)[2], const shared_tile& from, unsigned row,
                                      unsigned col) {
  load_matrices_transposed(to, from.elements, from.at(row + lane_index() % 16, col));
}

/// Elements [index, index + 8) of an entry as bf16 into row `row`, zeros beyond the last.
CEDAR_DEVICE void unpack_eight(const packed_format& of, const std::uint8_t* entry, unsigned index,
                               const shared_tile& to, unsigned row) {
  for (unsigned i = index; i < index + 8; ++i)
    to.store(row, i, i < of.width ? round_bf16(decode_element(of, entry, i)) : bf16{});
}

CEDAR_DEVICE void clear_eight(const shared_tile& to, unsigned row, unsigned index) {
  for (unsigned i = index; i < index + 8; ++i) to.store(row, i, bf16{});
}

}  // namespace cedar::kernels::cuda
