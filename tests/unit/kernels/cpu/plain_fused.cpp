// Quantisation in plain scalar code, and the fused kernels as the operations that they replace.
#include <algorithm>
#include <cmath>

#include "tests/unit/kernels/cpu/plain_model.hpp"

namespace cedar::kernels::plain {

namespace {

/// The code of the nearest E4M3 number, of two the even one; 448 is the largest.
std::uint8_t encode_e4m3(float value) {
  const float magnitude = std::fabs(value);
  std::uint8_t best = 0;
  for (std::uint8_t code = 1; code < 127; ++code) {
    const float closer = std::fabs(decode_e4m3(code) - magnitude);
    const float known = std::fabs(decode_e4m3(best) - magnitude);
    if (closer < known || (closer == known && code % 2 == 0)) best = code;
  }
  return std::signbit(value) ? static_cast<std::uint8_t>(best + 128) : best;
}

/// The smallest power of two that is not below `value`, as an E8M0 byte.
std::uint8_t encode_e8m0_up(float value) {
  int exponent = 0;
  const float mantissa = std::frexp(value, &exponent);  // [1/2, 1)
  return static_cast<std::uint8_t>(127 + exponent - (mantissa == 0.5F ? 1 : 0));
}

}  // namespace

void quantize_fp8(const quantize_fp8_arguments& a) {
  for (std::size_t row = 0; row < a.x.rows; ++row)
    for (std::size_t group = 0; group < a.scales.cols; ++group) {
      const std::span<const bf16> x = a.x.row(row).subspan(32 * group, 32);
      const std::span<std::uint8_t> codes = a.codes.row(row).subspan(32 * group, 32);
      std::uint8_t& scale = a.scales.row(row)[group];
      float largest = 1e-4F;
      bool finite = true;
      for (const bf16 value : x) {
        finite = finite && std::isfinite(to_float(value));
        largest = std::max(largest, std::fabs(to_float(value)));
      }
      scale = finite ? encode_e8m0_up(largest * (1.0F / 448.0F)) : std::uint8_t{0xff};
      for (std::size_t i = 0; i < 32; ++i)
        codes[i] = finite ? encode_e4m3(to_float(x[i]) / decode_e8m0(scale)) : std::uint8_t{0x7f};
    }
}

void rms_norm_quantize(const rms_norm_quantize_arguments& a) {
  rms_norm(a.norm);
  quantize_fp8({a.norm.y, a.codes, a.scales});
}

void hc_transition(const hc_transition_arguments& a) {
  hc_expand(a.expand);
  hc_collapse({a.x, a.expand.out, a.pre});
  rms_norm({a.x, a.x, a.norm, a.rms_epsilon});
  quantize_fp8({a.x, a.codes, a.scales});
  hc_coefficients({a.expand.out, a.fn, a.base, a.scale, a.iterations, a.epsilon, a.rms_epsilon,
                   a.next_pre, a.next_post, a.next_combine});
}

void requantize_entries(const requantize_entries_arguments& a) {
  std::vector<bf16> x(a.codes.rows * a.codes.cols);
  const matrix_view<bf16> values(x.data(), a.codes.rows, a.codes.cols);
  for (std::size_t row = 0; row < a.codes.rows; ++row)
    std::ranges::transform(
        decode_entry(entry_format::fp8_e8m0_32, a.entries.row_data(row), a.codes.cols),
        values.row_data(row), to_bf16);
  quantize_fp8({values, a.codes, a.scales});
}

void swiglu_quantize(const swiglu_quantize_arguments& a) {
  std::vector<bf16> hidden(a.gate.rows * a.gate.cols);
  const matrix_view<bf16> y(hidden.data(), a.gate.rows, a.gate.cols);
  swiglu({y, a.gate, a.up, a.route_weights, a.limit});
  quantize_fp8({y, a.codes, a.scales});
}

}  // namespace cedar::kernels::plain
