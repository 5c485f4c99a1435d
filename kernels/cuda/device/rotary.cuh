// Rotations by position, in place. A thread has a pair of elements.
// Grid: x over the rows, y over the pairs of a row.
#pragma once

#include "kernels/cuda/device/rotation.cuh"
#include "kernels/plan/rows.hpp"

namespace cedar::kernels::cuda {

CEDAR_DEVICE unsigned own_pair() {
  return block_index().y * plan::part_threads + thread_index();
}

/// The last 2 * frequencies.size elements of each head, pairs (2i, 2i + 1).
CEDAR_KERNEL(plan::part_threads)
void rotate_ends(global_rows<bf16> x, std::size_t head_dim,
                 global_array<const std::int32_t> positions, global_array<const float> frequencies,
                 bool inverse) {
  const std::size_t pairs = frequencies.size, head = own_pair() / pairs, pair = own_pair() % pairs;
  if (head * head_dim >= x.cols) return;
  const std::size_t row = block_index().x;
  const std::size_t first = (head + 1) * head_dim - 2 * pairs + 2 * pair;
  rotate(x, row, first, first + 1, positions.load(row), frequencies.load(pair), inverse);
}

/// Whole heads, pairs (i, i + head_dim / 2): the first half of them by the row of the image, the
/// others by its column.
CEDAR_KERNEL(plan::part_threads)
void rotate_halves(global_rows<bf16> x, std::size_t head_dim, global_array<const std::int32_t> rows,
                   global_array<const std::int32_t> columns,
                   global_array<const float> frequencies) {
  const std::size_t pairs = head_dim / 2, head = own_pair() / pairs, pair = own_pair() % pairs;
  if (head * head_dim >= x.cols) return;
  const std::size_t row = block_index().x, quarter = frequencies.size;
  const bool by_row = pair < quarter;
  rotate(x, row, head * head_dim + pair, head * head_dim + pairs + pair,
         by_row ? rows.load(row) : columns.load(row),
         frequencies.load(by_row ? pair : pair - quarter), false);
}

}  // namespace cedar::kernels::cuda
