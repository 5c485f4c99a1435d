#include "kernels/reference/formats.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace cedar::kernels::reference {

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Magnitudes of the E4M3 codes 0..126: exponent bias 7, three mantissa bits, subnormals at
/// exponent 0.
std::array<double, 127> make_e4m3_magnitudes() {
  std::array<double, 127> values{};
  for (int code = 0; code < 127; ++code) {
    const int exponent = code / 8;
    const int mantissa = code % 8;
    const double value =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
    values[static_cast<std::size_t>(code)] = value;
  }
  return values;
}

std::span<const double> e4m3_magnitudes() {
  static const std::array<double, 127> values = make_e4m3_magnitudes();
  return values;
}

constexpr std::array<double, 8> e2m1_magnitudes = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

/// Index of the magnitude nearest to |value|, the even index on ties, the last one beyond the end.
std::uint8_t nearest(std::span<const double> magnitudes, double value) {
  const double magnitude = std::fabs(value);
  const auto above = std::lower_bound(magnitudes.begin(), magnitudes.end(), magnitude);
  if (above == magnitudes.begin()) return 0;
  if (above == magnitudes.end()) return static_cast<std::uint8_t>(magnitudes.size() - 1);
  const auto high = static_cast<std::uint8_t>(above - magnitudes.begin());
  const auto low = static_cast<std::uint8_t>(high - 1);
  const double to_low = magnitude - magnitudes[low];
  const double to_high = magnitudes[high] - magnitude;
  if (to_low == to_high) return low % 2 == 0 ? low : high;
  return to_low < to_high ? low : high;
}

}  // namespace

double decode_e4m3(std::uint8_t code) {
  const auto magnitude = static_cast<std::uint8_t>(code & 0x7fU);
  if (magnitude == 0x7f) return not_a_number;
  const double value = e4m3_magnitudes()[magnitude];
  return (code & 0x80U) != 0 ? -value : value;
}

std::uint8_t encode_e4m3(double value) {
  const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return static_cast<std::uint8_t>(sign | 0x7f);
  return static_cast<std::uint8_t>(sign | nearest(e4m3_magnitudes(), value));
}

double decode_e8m0(std::uint8_t code) {
  return code == 255 ? not_a_number : std::ldexp(1.0, code - 127);
}

double decode_e2m1(std::uint8_t code) {
  const double value = e2m1_magnitudes[code & 7U];
  return (code & 8U) != 0 ? -value : value;
}

std::uint8_t encode_e2m1(double value) {
  const std::uint8_t sign = std::signbit(value) ? 8 : 0;
  return static_cast<std::uint8_t>(sign | nearest(e2m1_magnitudes, value));
}

double decode_packed_e2m1(std::span<const std::uint8_t> bytes, std::size_t index) {
  const std::uint8_t byte = bytes[index / 2];
  return decode_e2m1(static_cast<std::uint8_t>(index % 2 == 0 ? byte & 0x0fU : byte >> 4));
}

std::uint8_t encode_e8m0_ceiling(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = bits >> 23;
  return static_cast<std::uint8_t>((bits & 0x7fffffU) == 0 ? exponent : exponent + 1);
}

}  // namespace cedar::kernels::reference
