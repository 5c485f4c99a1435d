// Reproducible random tensors, and running a check on every instruction set that this machine has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "kernels/base/buffer.hpp"
#include "kernels/base/dtype.hpp"
#include "kernels/ops/backend.hpp"

namespace cedar::kernels {

/// Strided on purpose: a tensor of `cols` columns inside rows of cols + 3.
template <class T>
class tensor {
 public:
  tensor(std::size_t rows, std::size_t cols)
      : memory_(rows * (cols + padding)), rows_(rows), cols_(cols) {}

  matrix_view<T> view() { return {memory_.data(), rows_, cols_, cols_ + padding}; }
  matrix_view<const T> view() const { return {memory_.data(), rows_, cols_, cols_ + padding}; }
  std::vector<T>& memory() { return memory_; }

  friend bool operator==(const tensor&, const tensor&) = default;

 private:
  static constexpr std::size_t padding = 3;
  std::vector<T> memory_;
  std::size_t rows_;
  std::size_t cols_;
};

class random_tensors {
 public:
  explicit random_tensors(std::uint32_t seed) : engine_(seed) {}

  float normal(float scale) { return std::normal_distribution<float>(0.0F, scale)(engine_); }
  std::size_t below(std::size_t bound) { return engine_() % bound; }

  tensor<bf16> bf16_matrix(std::size_t rows, std::size_t cols, float scale);
  tensor<float> f32_matrix(std::size_t rows, std::size_t cols, float scale);
  /// E4M3 codes without NaN.
  tensor<std::uint8_t> e4m3_codes(std::size_t rows, std::size_t cols);
  tensor<std::uint8_t> bytes(std::size_t rows, std::size_t cols, std::size_t first,
                             std::size_t last);
  std::vector<float> f32_vector(std::size_t size, float scale);
  std::vector<bf16> bf16_vector(std::size_t size, float scale);

 private:
  std::mt19937 engine_;
};

/// Calls check(backend) for each instruction set of this machine that the backend has code for
/// (AVX2 and, where there is one, AVX-512 in both forms), on 1, 2, 3 and 7 threads, with everything divided that
/// can be; restores the choice afterwards.
void on_every_target(const std::function<void(const backend&)>& check);

}  // namespace cedar::kernels
