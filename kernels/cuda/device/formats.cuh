// Number formats in registers: the bits of kernels/README.md, by integer arithmetic that is the
// same on the device and in the emulation.
#pragma once

#include <cstdint>

#include "kernels/base/dtype.hpp"
#include "kernels/cuda/device/platform.cuh"

namespace cedar::kernels::cuda {

CEDAR_DEVICE float widen(bf16 value) {
  return float_of(static_cast<std::uint32_t>(value.bits) << 16);
}

/// To nearest, ties to even; NaN stays NaN.
CEDAR_DEVICE bf16 round_bf16(float value) {
  const std::uint32_t bits = bits_of(value);
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  const std::uint32_t rounded = is_nan ? bits | 0x400000U : bits + 0x7fffU + (bits >> 16 & 1U);
  bf16 out;
  out.bits = static_cast<std::uint16_t>(rounded >> 16);
  return out;
}

/// 2^(code - 127), exact down to the subnormal 2^-127; 255 is NaN.
CEDAR_DEVICE float decode_e8m0(std::uint8_t code) {
  if (code == 255) return float_of(0x7fc00000U);
  return float_of(code == 0 ? 0x400000U : static_cast<std::uint32_t>(code) << 23);
}

/// E8M0 code of the power of two at or above `value` (entry_format.hpp); infinity and NaN give 255.
/// `value` is not negative and not below 2^-126.
CEDAR_DEVICE std::uint8_t encode_e8m0_ceiling(float value) {
  const std::uint32_t bits = bits_of(value) + 0x7fffffU;
  const std::uint32_t code = bits >> 23;
  return static_cast<std::uint8_t>(code < 255 ? code : 255);
}

/// The NaN codes read as 480 and -480, which no weight and no finite activation holds.
CEDAR_DEVICE float decode_e4m3(std::uint32_t code) {
  // As the upper bits of binary32 the code is off by the difference of the biases, 120, alone.
  return float_of((code & 0x80U) << 24 | (code & 0x7fU) << 20) * 0x1p120F;
}

/// Nearest, ties to the even code; magnitudes above 448 saturate, NaN gives 0x7f.
CEDAR_DEVICE std::uint8_t encode_e4m3(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t size = bits & 0x7fffffffU;
  std::uint32_t code;
  if (size > 0x7f800000U) {
    code = 0x7f;
  } else if (size >= 0x43e00000U) {  // 448
    code = 0x7e;
  } else if (size < 0x3c800000U) {  // 2^-6: a multiple of 2^-9, which the sum is rounded to
    code = bits_of(float_of(size) + 0x1p14F) - bits_of(0x1p14F);
  } else {
    code = ((size + 0x7ffffU + (size >> 20 & 1U)) >> 20) - (120U << 3);
  }
  return static_cast<std::uint8_t>((bits >> 24 & 0x80U) | code);
}

/// Four E2M1 codes, the first in the lowest bits, as the E4M3 codes of the same values.
CEDAR_DEVICE std::uint32_t e4m3_of_e2m1(std::uint32_t codes) {
  const std::uint32_t pairs = (codes | codes << 8) & 0x00ff00ffU;
  const std::uint32_t each = (pairs | pairs << 4) & 0x0f0f0f0fU;
  const std::uint32_t size = each & 0x07070707U;
  // From 1 on a magnitude is 4 * code + 0x30; 0.5 is 0x30, and 0 is 0.
  const std::uint32_t small = ~(size >> 1 | size >> 2) & 0x01010101U;
  const std::uint32_t large = ((size << 2) + 0x30303030U) & ~(small * 0xffU);
  return (each & 0x08080808U) << 4 | large | (size & small) * 0x30U;
}

/// Two bf16 in a register, the first in the lower half. Of numbers that are exact in bf16.
CEDAR_DEVICE std::uint32_t pack_exact(float first, float second) {
  return bits_of(first) >> 16 | (bits_of(second) & 0xffff0000U);
}

}  // namespace cedar::kernels::cuda
