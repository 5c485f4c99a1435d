// Residual streams: what mixes them, and the mixing.
//
// Coefficients of a row take two kernels: `mix_products` gives each of its (2 + s) * s dot products
// a block of its own and leaves them in the outputs, which have just the room; `mix_coefficients`
// has a block for the row's mean square, whose first thread then finishes all of them. From one
// sublayer to the next it takes three: `expand_and_collapse`, `normalise_and_mix` and
// `mix_coefficients`.
#pragma once

#include "kernels/cuda/device/formats.cuh"
#include "kernels/cuda/device/functions.cuh"
#include "kernels/cuda/device/norm_row.cuh"
#include "kernels/plan/rows.hpp"

namespace cedar::kernels::cuda {

/// Most streams that a thread mixes.
inline constexpr unsigned streams_max = 8;

struct coefficients_problem {
  global_rows<const bf16> streams;  ///< [n, s*d]
  global_rows<const float> fn;  ///< [(2+s)*s, s*d]
  global_array<const float> base;  ///< [(2+s)*s]
  global_array<const float> scale;  ///< [3]
  unsigned iterations;
  float epsilon, rms_epsilon;
  global_rows<float> pre, post, combine;  ///< [n, s], [n, s], [n, s*s]
};

/// Where output `index` of a row lies.
CEDAR_DEVICE float* mix_at(const coefficients_problem& in, std::size_t row, std::size_t index) {
  const std::size_t s = in.pre.cols;
  if (index < s) return in.pre.at(row, index);
  if (index < 2 * s) return in.post.at(row, index - s);
  return in.combine.at(row, index - 2 * s);
}

/// The dot product of an output, by a block.
CEDAR_DEVICE void mix_product(const shared_array<float>& sums, const coefficients_problem& in,
                              std::size_t row, std::size_t output) {
  float own = 0;
  for (std::size_t i = thread_index(); i < in.streams.cols; i += sum_threads)
    own = fused(widen(in.streams.load(row, i)), in.fn.load(output, i), own);
  const float total = sum_block(sums, own);
  if (thread_index() == 0) *mix_at(in, row, output) = total;
}

/// Grid: x over the rows, y over the outputs.
CEDAR_KERNEL(sum_threads) void mix_products(coefficients_problem in) {
  dynamic_shared shared;
  mix_product(shared.take<float>(sum_warps, "sums"), in, block_index().x, block_index().y);
}

/// The same beside the norm of the collapsed rows, which needs nothing of it. Grid: x over the
/// rows, y over the outputs, and one more for the norm.
CEDAR_KERNEL(sum_threads) void normalise_and_mix(norm_problem norm, coefficients_problem in) {
  dynamic_shared shared;
  const auto sums = shared.take<float>(sum_warps, "sums");
  const std::size_t row = block_index().x, output = block_index().y;
  if (output == in.fn.rows)
    normalise_row(sums, norm, row);
  else
    mix_product(sums, in, row, output);
}

/// Divides each row (step 1, other s) or column (step s, other 1) of c by its sum plus epsilon.
CEDAR_DEVICE void divide_lines(float* c, unsigned s, unsigned step, unsigned other, float epsilon) {
  for (unsigned line = 0; line < s; ++line) {
    float sum = 0;
    for (unsigned i = 0; i < s; ++i) sum += c[line * other + i * step];
    for (unsigned i = 0; i < s; ++i)
      c[line * other + i * step] = divide(c[line * other + i * step], sum + epsilon);
  }
}

CEDAR_DEVICE void sinkhorn(float* c, unsigned s, unsigned iterations, float epsilon) {
  for (unsigned i = 0; i < s; ++i) {
    float largest = c[i * s], sum = 0;
    for (unsigned k = 1; k < s; ++k) largest = c[i * s + k] > largest ? c[i * s + k] : largest;
    for (unsigned k = 0; k < s; ++k) sum += c[i * s + k] = exponential(c[i * s + k] - largest);
    for (unsigned k = 0; k < s; ++k) c[i * s + k] = divide(c[i * s + k], sum) + epsilon;
  }
  divide_lines(c, s, s, 1, epsilon);
  for (unsigned round = 1; round < iterations; ++round) {
    divide_lines(c, s, 1, s, epsilon);
    divide_lines(c, s, s, 1, epsilon);
  }
}

/// Grid: x over the rows.
CEDAR_KERNEL(sum_threads) void mix_coefficients(coefficients_problem in) {
  dynamic_shared shared;
  const auto sums = shared.take<float>(sum_warps, "sums");
  const std::size_t row = block_index().x;
  float own = 0;
  for (std::size_t i = thread_index(); i < in.streams.cols; i += sum_threads) {
    const float x = widen(in.streams.load(row, i));
    own = fused(x, x, own);
  }
  const float mean = divide(sum_block(sums, own), static_cast<float>(in.streams.cols));
  if (thread_index() != 0) return;
  const float factor = divide(1.0F, square_root(mean + in.rms_epsilon));
  const unsigned s = static_cast<unsigned>(in.pre.cols);
  float c[streams_max * streams_max];
  for (unsigned i = 0; i < s; ++i) {
    float& pre = *in.pre.at(row, i);
    float& post = *in.post.at(row, i);
    pre = sigmoid(pre * factor * in.scale.load(0) + in.base.load(i)) + in.epsilon;
    post = 2 * sigmoid(post * factor * in.scale.load(1) + in.base.load(s + i));
  }
  for (unsigned i = 0; i < s * s; ++i)
    c[i] = in.combine.load(row, i) * factor * in.scale.load(2) + in.base.load(2 * s + i);
  sinkhorn(c, s, in.iterations, in.epsilon);
  for (unsigned i = 0; i < s * s; ++i) in.combine.store(row, i, c[i]);
}

CEDAR_DEVICE unsigned own_element() {
  return block_index().y * plan::part_threads + thread_index();
}

/// Grid of all that follow: x over the rows, y over the elements of a stream.
CEDAR_KERNEL(plan::part_threads)
void collapse(global_rows<bf16> y, global_rows<const bf16> streams, global_rows<const float> pre) {
  const std::size_t element = own_element(), row = block_index().x;
  if (element >= y.cols) return;
  float sum = 0;
  for (std::size_t i = 0; i < pre.cols; ++i)
    sum += pre.load(row, i) * widen(streams.load(row, i * y.cols + element));
  y.store(row, element, round_bf16(sum));
}

struct expand_problem {
  global_rows<bf16> out;  ///< [n, s*d]; may be the memory of streams
  global_rows<const bf16> streams;  ///< [n, s*d]
  global_rows<const bf16> y;  ///< [n, d]
  global_rows<const float> post;  ///< [n, s]
  global_rows<const float> combine;  ///< [n, s*s]
};

/// An element of all streams of a row, which are read before one is written; `fresh`: what became
/// of them.
CEDAR_DEVICE void expand_element(float (&fresh)[streams_max], const expand_problem& in,
                                 std::size_t row, std::size_t element) {
  const unsigned s = static_cast<unsigned>(in.post.cols);
  float old[streams_max];
  for (unsigned i = 0; i < s; ++i) old[i] = widen(in.streams.load(row, i * in.y.cols + element));
  const float own = widen(in.y.load(row, element));
  for (unsigned k = 0; k < s; ++k) {
    float mixed = 0;
    for (unsigned i = 0; i < s; ++i) mixed += in.combine.load(row, i * s + k) * old[i];
    const bf16 rounded = round_bf16(in.post.load(row, k) * own + mixed);
    in.out.store(row, k * in.y.cols + element, rounded);
    fresh[k] = widen(rounded);
  }
}

CEDAR_KERNEL(plan::part_threads)
void expand(expand_problem in) {
  const std::size_t element = own_element();
  float fresh[streams_max];
  if (element < in.y.cols) expand_element(fresh, in, block_index().x, element);
}

/// expand, and collapse of what it gives.
CEDAR_KERNEL(plan::part_threads)
void expand_and_collapse(expand_problem in, global_rows<bf16> y, global_rows<const float> pre) {
  const std::size_t element = own_element(), row = block_index().x;
  if (element >= y.cols) return;
  float fresh[streams_max];
  expand_element(fresh, in, row, element);
  float sum = 0;
  for (unsigned i = 0; i < pre.cols; ++i) sum += pre.load(row, i) * fresh[i];
  y.store(row, element, round_bf16(sum));
}

}  // namespace cedar::kernels::cuda
