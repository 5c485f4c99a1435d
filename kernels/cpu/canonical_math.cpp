#include "kernels/cpu/canonical_math.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/ops/elementary.hpp"

namespace cedar::kernels::canonical {
namespace {

using namespace constants;

float power_of_two(std::int32_t exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

}  // namespace

float exp(float x) {
  float bounded = exp_largest < x ? exp_largest : x;
  bounded = exp_smallest > bounded ? exp_smallest : bounded;
  const float shifted = std::fma(bounded, log2_e, rounder);
  const float n = shifted - rounder;
  const auto exponent = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) -
                                                  std::bit_cast<std::uint32_t>(rounder));
  const float reduced = std::fma(-n, ln2_high, bounded);
  const float r = std::fma(-n, ln2_low, reduced);
  const float r_error = std::fma(-n, ln2_low, reduced - r);
  float q = std::fma(exp_7, r, exp_6);
  q = std::fma(q, r, exp_5);
  q = std::fma(q, r, exp_4);
  q = std::fma(q, r, exp_3);
  q = std::fma(q, r, exp_2);
  const float power = 1.0F + (r + std::fma(r * r, q, r_error));
  // Two factors, because 2^exponent itself may not be representable.
  const std::int32_t half = exponent >> 1;
  return power * power_of_two(half) * power_of_two(exponent - half);
}

float log1p(float argument) {
  const double x = argument;
  const bool direct = x < log1p_direct;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(1.0 + x) + (one_bits - sqrt_half_bits);
  const double exponent =
      std::bit_cast<double>((bits >> 52) | integer_bits) - (integer_offset + 1023.0);
  const double mantissa = std::bit_cast<double>((bits & mantissa_bits) + sqrt_half_bits);
  const double f = direct ? x : mantissa - 1.0;
  const double k = direct ? 0.0 : exponent;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double series = std::fma(log_5, z, log_4);
  series = std::fma(series, z, log_3);
  series = std::fma(series, z, log_2);
  series = std::fma(series, z, log_1);
  // 2 s + s z series, and 2 s = f - s f.
  const double log_mantissa = std::fma(s, std::fma(z, series, -f), f);
  // The added 0 * x is for NaN alone.
  return static_cast<float>(std::fma(k, ln2, std::fma(0.0, x, log_mantissa)));
}

float sigmoid(float x) {
  const float e = exp(-std::fabs(x));
  return (x < 0.0F ? e : 1.0F) / (1.0F + e);
}

float softplus(float x) {
  return x > softplus_linear ? x : log1p(exp(x));
}

float gelu(float x) {
  // Phi(-|x|) = erfc(z) / 2, z = |x| / sqrt(2), and erfc(z) = t e^(-z^2 + P(t)), t = 2 / (2 + z). P
  // is a polynomial in (7 t - 4) / 3, interpolated for z <= 12 at Chebyshev nodes (error 2e-10;
  // beyond, the result is below the range of binary32).
  constexpr double coefficients[] = {
      -1.0089604792287459643e-7, 6.9806484677269704553e-6,  -8.3827603836958090908e-6,
      -4.7792474594392276158e-5, 1.0048956264062598747e-4,  1.6023541238386307218e-4,
      -7.0452239937270762611e-4, -2.0371683224922976361e-4, 4.319849179658924225e-3,
      -1.7650794899557439155e-3, -3.1907422986474673662e-2, 1.932366021113913934e-2,
      5.8560210472564563954e-1,  -5.748763017879774865e-1};
  if (x != x) return x;
  constexpr double sqrt_half = 0x1.6a09e667f3bcdp-1;
  const double wide = x;
  const double t = 2.0 / std::fma(std::fabs(wide), sqrt_half, 2.0);
  const double y = (7.0 * t - 4.0) / 3.0;
  double p = 0.0;
  for (const double coefficient : coefficients) p = std::fma(p, y, coefficient);
  const double exponent = std::fma(-0.5 * wide, wide, p);
  const double tail = 0.5 * t * natural_exp(exponent < 0.0 ? exponent : 0.0);
  return static_cast<float>(wide * (x < 0.0F ? tail : 1.0 - tail));
}

rotation rotate_by(float angle) {
  // pi/2 in two binary64 parts; n * first part is not exact, but its fused multiply-add is.
  constexpr double half_pi_high = 0x1.921fb54442d18p+0;
  constexpr double half_pi_low = 0x1.1a62633145c07p-54;
  constexpr double two_over_pi = 0x1.45f306dc9c883p-1;
  constexpr double round_to_integer = 0x1.8p+52;
  const double x = angle;
  const double n = std::fma(x, two_over_pi, round_to_integer) - round_to_integer;
  double r = std::fma(-n, half_pi_high, x);
  r = std::fma(-n, half_pi_low, r);
  const double z = r * r;
  // Taylor series on |r| <= pi/4; the first terms left out are below 1e-11.
  double sine = std::fma(-1.0 / 39916800, z, 1.0 / 362880);
  sine = std::fma(sine, z, -1.0 / 5040);
  sine = std::fma(sine, z, 1.0 / 120);
  sine = std::fma(sine, z, -1.0 / 6);
  sine = std::fma(r * z, sine, r);
  double cosine = std::fma(1.0 / 479001600, z, -1.0 / 3628800);
  cosine = std::fma(cosine, z, 1.0 / 40320);
  cosine = std::fma(cosine, z, -1.0 / 720);
  cosine = std::fma(cosine, z, 1.0 / 24);
  cosine = std::fma(cosine, z, -0.5);
  cosine = std::fma(z, cosine, 1.0);
  const auto quadrant = static_cast<std::uint64_t>(static_cast<std::int64_t>(n)) & 3U;
  if ((quadrant & 1U) != 0) {
    const double swap = sine;
    sine = cosine;
    cosine = -swap;
  }
  if ((quadrant & 2U) != 0) {
    sine = -sine;
    cosine = -cosine;
  }
  return {static_cast<float>(cosine), static_cast<float>(sine)};
}

}  // namespace cedar::kernels::canonical
