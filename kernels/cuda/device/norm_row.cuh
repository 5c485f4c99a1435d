// RMS norm of a row by a block, and its quantisation in the same pass: for kernels that do nothing
// else, and for those that go on with the row.
#pragma once

#include "kernels/cuda/device/eights.cuh"
#include "kernels/cuda/device/sums.cuh"

namespace cedar::kernels::cuda {

struct norm_problem {
  global_rows<bf16> y;  ///< [n, d]; may be the same memory as x
  global_rows<const bf16> x;  ///< [n, d]
  global_rows<const bf16> weight;  ///< [1, d]
  float epsilon;
  quantised_rows quantised;  ///< without rows: y alone
};

CEDAR_DEVICE float sum_of_squares(const float (&values)[piece_elements]) {
  float pairs[4];
  for (unsigned i = 0; i < 4; ++i)
    pairs[i] = fused(values[i], values[i], values[i + 4] * values[i + 4]);
  return (pairs[0] + pairs[2]) + (pairs[1] + pairs[3]);
}

/// By all sum_threads threads of a block; `sums` [sum_warps].
CEDAR_DEVICE void normalise_row(const shared_array<float>& sums, const norm_problem& in,
                                std::size_t row) {
  const unsigned pieces = pieces_of(in.x.cols);
  float squares = 0;
  for (unsigned piece = thread_index(); piece < pieces; piece += sum_threads) {
    float values[piece_elements];
    load_eight(values, in.x, row, piece);
    squares += sum_of_squares(values);
  }
  const float mean = divide(sum_block(sums, squares), static_cast<float>(in.x.cols));
  const float factor = divide(1.0F, square_root(mean + in.epsilon));
  for (unsigned first = 0; first < pieces; first += sum_threads) {
    const unsigned piece = first + thread_index();
    const bool valid = piece < pieces;
    float values[piece_elements] = {}, weights[piece_elements] = {};
    if (valid) {
      load_eight(values, in.x, row, piece);
      load_eight(weights, in.weight, 0, piece);
      for (unsigned i = 0; i < piece_elements; ++i) values[i] = weights[i] * (values[i] * factor);
      store_eight(values, in.y, row, piece);
    }
    if (in.quantised.codes.rows > 0) quantise_eight(values, in.quantised, row, piece, valid);
  }
}

}  // namespace cedar::kernels::cuda
