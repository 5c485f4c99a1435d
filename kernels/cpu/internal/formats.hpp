// Decoding tables of the scale bytes.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

namespace cedar::kernels::cpu {

/// E8M0: byte b means 2^(b-127); 255 is NaN. 2^-127 is subnormal in binary32.
constexpr std::array<float, 256> make_e8m0_values() {
  std::array<float, 256> values{};
  values[0] = std::bit_cast<float>(0x00400000U);
  for (std::uint32_t code = 1; code < 255; ++code) values[code] = std::bit_cast<float>(code << 23);
  values[255] = std::numeric_limits<float>::quiet_NaN();
  return values;
}

/// E4M3, finite only: exponent bias 7, three mantissa bits, largest 448, 0x7f and 0xff are NaN.
constexpr std::array<float, 256> make_e4m3_values() {
  std::array<float, 256> values{};
  for (std::uint32_t code = 0; code < 128; ++code) {
    const std::uint32_t mantissa = code & 7U;
    const std::uint32_t exponent = code >> 3;
    const float value = exponent == 0
                            ? static_cast<float>(mantissa) * 0x1p-9F
                            : std::bit_cast<float>((exponent + 120U) << 23 | mantissa << 20);
    values[code] = code == 127 ? std::numeric_limits<float>::quiet_NaN() : value;
    values[code + 128] = -values[code];
  }
  return values;
}

/// Row b: the sixteen E2M1 values times 2^(b-127); what is too large is infinite,
/// row 255 is NaN.
using e2m1_table = std::array<float, 16>;
constexpr std::array<e2m1_table, 256> make_e2m1_values() {
  constexpr float magnitudes[8] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  constexpr auto scales = make_e8m0_values();
  std::array<e2m1_table, 256> values{};
  for (std::size_t b = 0; b < 255; ++b)
    for (std::size_t code = 0; code < 8; ++code) {
      const bool overflows = magnitudes[code] * (scales[b] * 0.25F) >= 0x1p126F;
      const float value =
          overflows ? std::numeric_limits<float>::infinity() : magnitudes[code] * scales[b];
      values[b][code] = value;
      values[b][code + 8] = -value;
    }
  values[255].fill(scales[255]);
  return values;
}

/// The same as bf16, which holds them exactly: lower and upper bytes.
struct e2m1_byte_table {
  std::array<std::uint8_t, 16> low;
  std::array<std::uint8_t, 16> high;
};
constexpr std::array<e2m1_byte_table, 256> make_e2m1_bytes() {
  std::array<e2m1_byte_table, 256> bytes{};
  const auto values = make_e2m1_values();
  for (std::size_t b = 0; b < 256; ++b)
    for (std::size_t code = 0; code < 16; ++code) {
      const auto bits = std::bit_cast<std::uint32_t>(values[b][code]);
      bytes[b].low[code] = static_cast<std::uint8_t>(bits >> 16);
      bytes[b].high[code] = static_cast<std::uint8_t>(bits >> 24);
    }
  return bytes;
}

inline constexpr std::array<float, 256> e8m0_values = make_e8m0_values();
inline constexpr std::array<float, 256> e4m3_values = make_e4m3_values();
alignas(64) inline constexpr std::array<e2m1_table, 256> e2m1_values = make_e2m1_values();
alignas(64) inline constexpr std::array<e2m1_byte_table, 256> e2m1_bytes = make_e2m1_bytes();

}  // namespace cedar::kernels::cpu
