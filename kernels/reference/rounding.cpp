#include "kernels/reference/rounding.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace cedar::kernels::reference {

double widen(bf16 value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

bf16 round_bf16(double value) noexcept {
  if (std::isnan(value)) return bf16{0x7fc0};
  // Candidates: the truncated magnitude and its successor; the distances are exact in double.
  const double magnitude = std::fabs(value);
  float near_value = static_cast<float>(magnitude);
  if (near_value > magnitude) near_value = std::nextafter(near_value, 0.0F);
  auto code = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(near_value) >> 16);
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (code >= 0x7f80) return bf16{static_cast<std::uint16_t>(sign | 0x7f80)};
  const double low = widen(bf16{code});
  // Above the largest finite value the next one would be 2^128; halfway to it rounds to infinity.
  const double high =
      code == 0x7f7f ? std::ldexp(1.0, 128) : widen(bf16{static_cast<std::uint16_t>(code + 1)});
  const double below = magnitude - low;
  const double above = high - magnitude;
  if (above < below || (above == below && code % 2 == 1)) ++code;
  return bf16{static_cast<std::uint16_t>(sign | code)};
}

}  // namespace cedar::kernels::reference
