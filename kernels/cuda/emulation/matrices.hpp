// Matrix operations of a warp on the fragments of its lanes, as the PTX manual lays them out.
//
// Products of two bf16 or E4M3 numbers and their sum over k are exact here (binary64), and the
// result is rounded once when it is added to c. Devices keep fewer bits and do not say how many.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/emulation/block.hpp"

namespace cedar::kernels::cuda::emulation {

/// A lane's part of c, a and b.
struct fragments {
  float (&c)[4];
  const std::uint32_t (&a)[4];
  const std::uint32_t (&b)[2];
};

void run_multiply_bf16(lane_operands lanes);
void run_multiply_e4m3(lane_operands lanes);

/// A lane's results, and the row that it gives the place of.
template <unsigned Count>
struct matrix_rows {
  std::uint32_t to[Count];
  shared_place array;
  std::size_t first;  ///< bytes from the beginning of the array
};

/// Reads the row whose place lane `row` gave: 16 bytes.
void read_matrix_row(const shared_place& array, std::size_t first, unsigned lane,
                     std::uint32_t (&row)[4]);

template <unsigned Count>
void run_load(lane_operands lanes) {
  for (unsigned row = 0; row < 8 * Count; ++row) {
    const auto* source = static_cast<const matrix_rows<Count>*>(lanes[row]);
    std::uint32_t words[4];
    read_matrix_row(source->array, source->first, row, words);
    for (unsigned i = 0; i < 4; ++i)
      static_cast<matrix_rows<Count>*>(lanes[row % 8 * 4 + i])->to[row / 8] = words[i];
  }
}

/// Matrices of 16-bit elements, transposed: lane i gets rows 2 * (i % 4) and the next of column i
/// / 4.
template <unsigned Count>
void run_load_transposed(lane_operands lanes) {
  for (unsigned matrix = 0; matrix < Count; ++matrix) {
    std::uint32_t rows[8][4];
    for (unsigned row = 0; row < 8; ++row) {
      const unsigned lane = matrix * 8 + row;
      const auto* source = static_cast<const matrix_rows<Count>*>(lanes[lane]);
      read_matrix_row(source->array, source->first, lane, rows[row]);
    }
    for (unsigned lane = 0; lane < warp_threads; ++lane) {
      const unsigned column = lane / 4;
      const auto element = [&](unsigned row) {
        return rows[row][column / 2] >> (column % 2 * 16) & 0xffffU;
      };
      static_cast<matrix_rows<Count>*>(lanes[lane])->to[matrix] =
          element(lane % 4 * 2) | element(lane % 4 * 2 + 1) << 16;
    }
  }
}

}  // namespace cedar::kernels::cuda::emulation
