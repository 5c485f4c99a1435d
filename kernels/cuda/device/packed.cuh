// Packed cache entries in registers: layouts and rules of ops/entry_format.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/formats.cuh"
#include "kernels/cuda/device/views.cuh"
#include "kernels/ops/entry_format.hpp"

namespace cedar::kernels::cuda {

/// What a thread needs of a format; made on the host, where entry_format.hpp's functions are.
struct packed_format {
  entry_format format;
  unsigned width;  ///< elements of an entry
  unsigned group;  ///< elements that share a scale; of bf16: 32, each without one
  unsigned code_bytes;  ///< where the scales begin
};

inline packed_format packed_format_of(entry_format format, std::size_t width) {
  const std::size_t group = group_size(format);
  return {format, static_cast<unsigned>(width), group == 0 ? 32U : static_cast<unsigned>(group),
          static_cast<unsigned>(code_bytes(format, width))};
}

/// The value of an E2M1 code in the lowest four bits.
CEDAR_DEVICE float decode_e2m1(std::uint32_t code) {
  return decode_e4m3(e4m3_of_e2m1(code & 0xfU) & 0xffU);
}

/// Nearest, ties to the even code; magnitudes above 6 saturate. E2M1 has no NaN: it gives 0.
CEDAR_DEVICE std::uint32_t encode_e2m1(float value) {
  const float size = float_of(bits_of(value) & 0x7fffffffU);
  const std::uint32_t code = (size > 0.25F ? 1U : 0U) + (size >= 0.75F ? 1U : 0U) +
                             (size > 1.25F ? 1U : 0U) + (size >= 1.75F ? 1U : 0U) +
                             (size > 2.5F ? 1U : 0U) + (size >= 3.5F ? 1U : 0U) +
                             (size > 5.0F ? 1U : 0U);
  return (bits_of(value) >> 28 & 8U) | code;
}

/// As decode_e4m3, and the two NaN codes as NaN: entries come from rows that may hold one.
CEDAR_DEVICE float decode_e4m3_or_nan(std::uint8_t code) {
  return (code & 0x7fU) == 0x7fU ? float_of(0x7fc00000U) : decode_e4m3(code);
}

CEDAR_DEVICE float decode_scale(entry_format format, std::uint8_t code) {
  return format == entry_format::fp4_e4m3_16 ? decode_e4m3_or_nan(code) : decode_e8m0(code);
}

/// Element `index` of an entry, exact in bf16.
CEDAR_DEVICE float decode_element(const packed_format& of, const std::uint8_t* entry,
                                  unsigned index) {
  if (of.format == entry_format::bf16)
    return float_of(static_cast<std::uint32_t>(entry[2 * index]) << 16 |
                    static_cast<std::uint32_t>(entry[2 * index + 1]) << 24);
  const float scale = decode_scale(of.format, entry[of.code_bytes + index / of.group]);
  if (of.format == entry_format::fp8_e8m0_32) return decode_e4m3_or_nan(entry[index]) * scale;
  return decode_e2m1(entry[index / 2] >> (index % 2 * 4)) * scale;
}

/// Scale code of a group whose largest magnitude is `largest`.
CEDAR_DEVICE std::uint8_t encode_scale(entry_format format, float largest) {
  const auto above = [&](float least) { return largest < least ? least : largest; };  // NaN passes
  if (format == entry_format::fp4_e4m3_16) return encode_e4m3(divide(above(6 * 0x1p-9F), 6.0F));
  if (format == entry_format::fp4_e8m0_32)
    return encode_e8m0_ceiling(above(6 * 0x1p-126F) * (1.0F / 6.0F));
  return encode_e8m0_ceiling(above(1e-4F) * (1.0F / 448.0F));
}

}  // namespace cedar::kernels::cuda
