// The arithmetic of device/platform.cuh for a host compiler.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace cedar::kernels::cuda {

inline std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
inline float float_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

/// a * b + c, rounded once.
inline float fused(float a, float b, float c) {
  return std::fma(a, b, c);
}
/// Correctly rounded.
inline float divide(float a, float b) {
  return a / b;
}
/// Correctly rounded.
inline float square_root(float x) {
  return std::sqrt(x);
}
inline float exponential(float x) {
  return std::exp(x);
}
/// The integral of the standard normal density up to x.
inline double normal_distribution(double x) {
  return std::erfc(-x * std::numbers::sqrt2 / 2) / 2;
}
inline float logarithm_1p(float x) {
  return std::log1p(x);
}
inline void sine_cosine(float angle, float& sine, float& cosine) {
  sine = std::sin(angle);
  cosine = std::cos(angle);
}

}  // namespace cedar::kernels::cuda
