#include "kernels/ops/elementary.hpp"

#include <bit>
#include <cstdint>

namespace cedar::kernels {

namespace {

// ln 2 in two parts: the first has 33 significant bits, so that its products with exponents are
// exact.
constexpr double ln2_high = 6.93147180369123816490e-01;
constexpr double ln2_low = 1.90821492927058770002e-10;
constexpr std::uint64_t one_bits = 0x3ff0000000000000ULL;
constexpr std::uint64_t sqrt_half_bits = 0x3fe6a09e667f3bcdULL;
constexpr std::uint64_t mantissa_bits = 0x000fffffffffffffULL;
/// Adding and subtracting 1.5 * 2^52 rounds to the nearest integer, ties to even.
constexpr double rounder = 0x1.8p52;
constexpr double exp_smallest = -708.0;

}  // namespace

double natural_log(double x) {
  // x = 2^k (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); ln(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)) with
  // s = f / (2 + f). The coefficients of R are those of fdlibm's e_log.c (error below 2^-58.45).
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x) + (one_bits - sqrt_half_bits);
  const double k = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
  const double f = std::bit_cast<double>((bits & mantissa_bits) + sqrt_half_bits) - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double w = z * z;
  const double even = w * (3.999999999940941908e-01 +
                           w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const double odd = z * (6.666666666666735130e-01 +
                          w * (2.857142874366239149e-01 +
                               w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const double half_square = 0.5 * f * f;
  return k * ln2_high - ((half_square - (s * (half_square + (odd + even)) + k * ln2_low)) - f);
}

double natural_exp(double x) {
  if (!(x >= exp_smallest)) return 0;
  // x = n ln 2 + r; the Taylor series of e^r to the power 13, its error is below 2^-57.
  const double shifted = x * 1.44269504088896338700e+00 + rounder;
  const double n = shifted - rounder;
  const double high = x - n * ln2_high;
  const double low = n * ln2_low;
  const double r = high - low;
  double sum = 1.0 / 6227020800.0;
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  // r is not exact: what it lacks is added where it still counts.
  const double lost = (high - r) - low;
  const double power = 1.0 + (r + (r * r * sum + lost));
  const auto exponent = static_cast<std::int64_t>(n);
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(power) +
                               (static_cast<std::uint64_t>(exponent) << 52));
}

}  // namespace cedar::kernels
