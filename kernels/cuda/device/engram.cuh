// Engram's gate: a block has one stream of one row.
#pragma once

#include "kernels/cuda/device/formats.cuh"
#include "kernels/cuda/device/functions.cuh"
#include "kernels/cuda/device/sums.cuh"
#include "kernels/cuda/device/views.cuh"

namespace cedar::kernels::cuda {

struct engram_problem {
  global_rows<bf16> out;  ///< [n, s*d]; may be the memory of streams
  global_rows<const bf16> streams;  ///< [n, s*d]
  global_rows<const bf16> key_values;  ///< [n, (s+1)*d]
  global_rows<const bf16> q_weight, k_weight;  ///< [s, d]
  global_array<const std::uint8_t> image_rows;  ///< [n]
  float epsilon;
  global_rows<float> gates;  ///< [n, s]
};

/// The three sums that a gate is made of.
struct engram_sums {
  float product, streams, keys;
};

CEDAR_DEVICE engram_sums sum_gate(const engram_problem& in, std::size_t row, std::size_t stream) {
  const std::size_t width = in.q_weight.cols;
  engram_sums own{0, 0, 0};
  for (std::size_t i = thread_index(); i < width; i += sum_threads) {
    const float x = widen(in.streams.load(row, stream * width + i));
    const float key = widen(in.key_values.load(row, stream * width + i));
    const float weight = widen(in.q_weight.load(stream, i)) * widen(in.k_weight.load(stream, i));
    own.product = fused(x * weight, key, own.product);
    own.streams = fused(x, x, own.streams);
    own.keys = fused(key, key, own.keys);
  }
  return own;
}

CEDAR_DEVICE float gate_of(const engram_sums& of, float width, float epsilon) {
  const float norms = square_root(divide(of.streams, width) + epsilon) *
                      square_root(divide(of.keys, width) + epsilon);
  const float rho = divide(divide(of.product, norms), square_root(width));
  const float size = rho < 0 ? -rho : rho;
  const float root = square_root(size < 1e-6F ? 1e-6F : size);
  const float with_sign = float_of(bits_of(root) | (bits_of(rho) & 0x80000000U));
  return sigmoid(with_sign);
}

/// Grid: x over the rows, y over the streams.
CEDAR_KERNEL(sum_threads) void gate_rows(engram_problem in) {
  dynamic_shared shared;
  const auto sums = shared.take<float>(3 * sum_warps, "sums");
  const std::size_t row = block_index().x, stream = block_index().y, width = in.q_weight.cols;
  const engram_sums own = sum_gate(in, row, stream);
  const engram_sums all{sum_block(sums.part(0, sum_warps), own.product),
                        sum_block(sums.part(sum_warps, sum_warps), own.streams),
                        sum_block(sums.part(2 * sum_warps, sum_warps), own.keys)};
  const float gate =
      in.image_rows.load(row) != 0 ? 0.0F : gate_of(all, static_cast<float>(width), in.epsilon);
  if (thread_index() == 0) in.gates.store(row, stream, gate);
  for (std::size_t i = thread_index(); i < width; i += sum_threads) {
    const float x = widen(in.streams.load(row, stream * width + i));
    const float value = widen(in.key_values.load(row, in.gates.cols * width + i));
    in.out.store(row, stream * width + i, round_bf16(x + gate * value));
  }
}

}  // namespace cedar::kernels::cuda
