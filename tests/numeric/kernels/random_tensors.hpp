// Seeded tensors for the numeric suite, and small conversions of them.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "kernels/base/buffer.hpp"
#include "kernels/ops/arguments.hpp"

namespace cedar::test {

struct fp8_weight {
  kernels::matrix_buffer<std::uint8_t> codes;
  kernels::matrix_buffer<std::uint8_t> scales;

  kernels::fp8_weight_view view() const { return {codes.view(), scales.view()}; }
};

struct fp4_weight {
  kernels::matrix_buffer<std::uint8_t> codes;
  kernels::matrix_buffer<std::uint8_t> scales;

  kernels::fp4_weight_view view() const { return {codes.view(), scales.view()}; }
};

struct fp8_rows {
  kernels::matrix_buffer<std::uint8_t> codes;
  kernels::matrix_buffer<std::uint8_t> scales;

  kernels::fp8_rows_view view() const { return {codes.view(), scales.view()}; }
};

/// The same seed gives the same tensors on every machine.
class random_tensors {
 public:
  explicit random_tensors(std::size_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}

  /// Roughly normal with mean 0 and deviation 1 (a sum of uniforms).
  float normal();
  /// 0 <= result < bound.
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(engine_() % bound); }

  kernels::matrix_buffer<kernels::bf16> half(std::size_t rows, std::size_t cols, float scale = 1);
  kernels::matrix_buffer<float> full(std::size_t rows, std::size_t cols, float scale = 1);
  /// Every finite code occurs; neighbouring blocks have different scales.
  fp8_weight weight_fp8(std::size_t outputs, std::size_t inputs);
  fp4_weight weight_fp4(std::size_t outputs, std::size_t inputs);
  /// Activations with every finite code and scales that vary along the row.
  fp8_rows rows_fp8(std::size_t rows, std::size_t inputs);
  /// `count` entries of normal values; the magnitude varies from group to group.
  kernels::matrix_buffer<std::byte> entries(kernels::entry_format format, std::size_t count,
                                            std::size_t width);

 private:
  std::uint8_t e4m3();
  std::uint8_t scale_near(int exponent);

  std::mt19937 engine_;
};

/// Element by element |x|.
kernels::matrix_buffer<kernels::bf16> absolute(kernels::matrix_view<const kernels::bf16> x);
kernels::matrix_buffer<float> absolute(kernels::matrix_view<const float> x);

/// Dequantised values, exact in bf16.
kernels::matrix_buffer<kernels::bf16> dequantised(const kernels::fp8_rows_view& rows);
kernels::matrix_buffer<kernels::bf16> dequantised(const kernels::fp8_weight_view& weight);
kernels::matrix_buffer<kernels::bf16> dequantised(const kernels::fp4_weight_view& weight);

/// Pointers to the rows of a matrix of entries.
std::vector<const std::byte*> row_pointers(kernels::matrix_view<const std::byte> entries);

}  // namespace cedar::test
