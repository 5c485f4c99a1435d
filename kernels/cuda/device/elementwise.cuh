// Kernels whose elements, or groups of 32, do not need the rest of their row: a thread has a piece
// of eight elements. Grid: x over the rows, y over the pieces of a row.
#pragma once

#include "kernels/cuda/device/eights.cuh"
#include "kernels/cuda/device/functions.cuh"

namespace cedar::kernels::cuda {

inline constexpr unsigned elementwise_threads = 128;

/// The piece, or element, of this thread; it may lie beyond the row.
CEDAR_DEVICE unsigned own_item() {
  return block_index().y * elementwise_threads + thread_index();
}

/// x [n, k], k a multiple of 32.
CEDAR_KERNEL(elementwise_threads)
void quantise(global_rows<const bf16> x, quantised_rows to) {
  const unsigned piece = own_item();
  const std::size_t row = block_index().x;
  const bool valid = piece < pieces_of(x.cols);
  float values[piece_elements] = {};
  if (valid) load_eight(values, x, row, piece);
  quantise_eight(values, to, row, piece, valid);
}

/// Arguments of swiglu, and what becomes of its result: y if it has rows, else codes and scales.
struct swiglu_problem {
  global_rows<const bf16> gate, up;  ///< [n, i]
  global_array<const float> weights;  ///< [n], or empty: 1
  float limit;  ///< 0: none
  bool round_silu;
  global_rows<bf16> y;  ///< [n, i], or no rows
  quantised_rows quantised;
};

CEDAR_DEVICE float gated(const swiglu_problem& in, float gate, float up, float weight) {
  if (in.limit > 0) {  // comparisons that let a NaN pass
    gate = gate > in.limit ? in.limit : gate;
    up = up > in.limit ? in.limit : up;
    up = up < -in.limit ? -in.limit : up;
  }
  float smooth = gate * sigmoid(gate);
  if (in.round_silu) smooth = widen(round_bf16(smooth));
  return weight * (smooth * up);
}

CEDAR_KERNEL(elementwise_threads) void activate(swiglu_problem in) {
  const unsigned piece = own_item();
  const std::size_t row = block_index().x;
  const bool valid = piece < pieces_of(in.gate.cols);
  float values[piece_elements] = {}, ups[piece_elements] = {};
  if (valid) {
    load_eight(values, in.gate, row, piece);
    load_eight(ups, in.up, row, piece);
    const float weight = in.weights.size == 0 ? 1.0F : in.weights.load(row);
    for (unsigned i = 0; i < piece_elements; ++i) values[i] = gated(in, values[i], ups[i], weight);
  }
  if (in.y.rows > 0) {
    if (valid) store_eight(values, in.y, row, piece);
    return;
  }
  for (float& value : values) value = widen(round_bf16(value));
  quantise_eight(values, in.quantised, row, piece, valid);
}

/// y = the sum of parts[row * per_row ...], each [d], in order.
CEDAR_KERNEL(elementwise_threads)
void combine(global_rows<bf16> y, global_array<const bf16* const> parts, std::size_t per_row) {
  const unsigned piece = own_item();
  const std::size_t row = block_index().x;
  if (piece >= pieces_of(y.cols)) return;
  float sums[piece_elements] = {};
  for (std::size_t part = 0; part < per_row; ++part) {
    float values[piece_elements];
    load_eight(values, parts.load(row * per_row + part) + std::size_t{piece} * piece_elements,
               piece_size(y.cols, piece));
    for (unsigned i = 0; i < piece_elements; ++i) sums[i] += values[i];
  }
  store_eight(sums, y, row, piece);
}

/// In place: the root of softplus, which is linear above 20. A thread has one element.
CEDAR_KERNEL(elementwise_threads) void score_gates(global_rows<float> scores) {
  const std::size_t column = own_item(), row = block_index().x;
  if (column >= scores.cols) return;
  const float x = scores.load(row, column);
  const float softplus = x > 20.0F ? x : logarithm_1p(exponential(x));
  scores.store(row, column, square_root(softplus));
}

}  // namespace cedar::kernels::cuda
