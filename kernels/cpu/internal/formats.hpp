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

inline constexpr std::array<float, 256> e8m0_values = make_e8m0_values();
inline constexpr std::array<float, 256> e4m3_values = make_e4m3_values();

}  // namespace cedar::kernels::cpu
