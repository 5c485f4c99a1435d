// Pooling of compressed groups, and the elementwise operations of the vision tower: a thread has an
// element. Grid: x over the rows, y over the elements of a row.
#pragma once

#include "kernels/cuda/device/formats.cuh"
#include "kernels/cuda/device/views.cuh"
#include "kernels/plan/rows.hpp"

namespace cedar::kernels::cuda {

/// z [g, w] of values and gates [g * ratio, w]: a softmax over each group's gates, maximum first.
CEDAR_KERNEL(plan::part_threads)
void pool(global_rows<bf16> z, global_rows<const float> values, global_rows<const float> gates,
          unsigned ratio) {
  const std::size_t column = block_index().y * plan::part_threads + thread_index();
  const std::size_t group = block_index().x;
  if (column >= z.cols) return;
  float largest = gates.load(group * ratio, column);
  for (unsigned a = 1; a < ratio; ++a) {
    const float gate = gates.load(group * ratio + a, column);
    largest = gate > largest ? gate : largest;
  }
  float total = 0;
  for (unsigned a = 0; a < ratio; ++a)
    total += exponential(gates.load(group * ratio + a, column) - largest);
  float sum = 0;
  for (unsigned a = 0; a < ratio; ++a) {
    const float weight =
        divide(exponential(gates.load(group * ratio + a, column) - largest), total);
    sum += weight * values.load(group * ratio + a, column);
  }
  z.store(group, column, round_bf16(sum));
}

/// y = x * Phi(x); may be in place.
CEDAR_KERNEL(plan::part_threads) void apply_gelu(global_rows<bf16> y, global_rows<const bf16> x) {
  const std::size_t column = block_index().y * plan::part_threads + thread_index();
  const std::size_t row = block_index().x;
  if (column >= y.cols) return;
  const double value = widen(x.load(row, column));
  y.store(row, column, round_bf16(static_cast<float>(value * normal_distribution(value))));
}

/// y = a + b; may be in place.
CEDAR_KERNEL(plan::part_threads)
void add_rows(global_rows<bf16> y, global_rows<const bf16> a, global_rows<const bf16> b) {
  const std::size_t column = block_index().y * plan::part_threads + thread_index();
  const std::size_t row = block_index().x;
  if (column >= y.cols) return;
  y.store(row, column, round_bf16(widen(a.load(row, column)) + widen(b.load(row, column))));
}

}  // namespace cedar::kernels::cuda
