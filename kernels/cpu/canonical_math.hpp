// The transcendental functions of the result path: fixed polynomials of binary32 (log1p, gelu,
// sine and cosine: binary64) additions, multiplications and fused multiply-adds, so that every machine gets
// the same bits. Never the host's libm. Square roots and divisions are IEEE and need no definition.
//
// These scalar functions are the definition. internal/math-inl.hpp repeats exp, log1p, sigmoid and
// softplus on vectors with the same operations in the same order; a test compares the bits.
// Errors against the exact function (measured, see README.md): exp 0.8 ulp, log1p 0.51 ulp, sigmoid
// 2 ulp, softplus 1.5 ulp, gelu, sine and cosine 0.51 ulp of binary32. NaN in, NaN out.
#pragma once

#include <cstdint>

namespace cedar::kernels::canonical {

/// Coefficients and constants, shared with the vector versions.
namespace constants {
/// x outside of this range overflows to infinity or underflows to 0.
inline constexpr float exp_largest = 89.0F;
inline constexpr float exp_smallest = -104.0F;
inline constexpr float log2_e = 0x1.715476p+0F;
/// ln 2 in two parts; the first has 12 significant bits, so that n * ln2_high is exact for |n| <
/// 2^11.
inline constexpr float ln2_high = 0x1.62e000p-1F;
inline constexpr float ln2_low = 0x1.0bfbe8p-15F;
/// Adding and subtracting 1.5 * 2^23 rounds to the nearest integer, ties to even (|x| < 2^22).
inline constexpr float rounder = 12582912.0F;
/// (e^r - 1 - r) / r^2 for |r| <= ln(2)/2, interpolated at Chebyshev nodes; error of e^r 2.3e-10.
inline constexpr float exp_2 = 0.5F;
inline constexpr float exp_3 = 0x1.555556p-3F;
inline constexpr float exp_4 = 0x1.5554e8p-5F;
inline constexpr float exp_5 = 0x1.1110e0p-7F;
inline constexpr float exp_6 = 0x1.6d4362p-10F;
inline constexpr float exp_7 = 0x1.a12528p-13F;
/// log(1+f) = 2 atanh(s), s = f / (2+f): 2/3, 2/5 .. 2/11 of its series; |s| <= 0.172, error 1e-10.
inline constexpr double log_1 = 2.0 / 3;
inline constexpr double log_2 = 2.0 / 5;
inline constexpr double log_3 = 2.0 / 7;
inline constexpr double log_4 = 2.0 / 9;
inline constexpr double log_5 = 2.0 / 11;
inline constexpr double ln2 = 0x1.62e42fefa39efp-1;
/// Below sqrt(2) - 1 the argument of log1p needs no reduction.
inline constexpr double log1p_direct = 0x1.a827999fcef32p-2;
/// Bits of sqrt(1/2) and of 1 in binary64: mantissas are cut at sqrt(1/2).
inline constexpr std::uint64_t sqrt_half_bits = 0x3fe6a09e667f3bcdULL;
inline constexpr std::uint64_t one_bits = 0x3ff0000000000000ULL;
inline constexpr std::uint64_t mantissa_bits = 0x000fffffffffffffULL;
/// 2^52, as bits and as a number: an integer below 2^52 in the mantissa becomes a number.
inline constexpr std::uint64_t integer_bits = 0x4330000000000000ULL;
inline constexpr double integer_offset = 0x1p52;
/// softplus(x) = x above this.
inline constexpr float softplus_linear = 20.0F;
}  // namespace constants

/// e^x. Gradual underflow; +infinity above 88.72.
float exp(float x);

/// log(1 + x) for finite x >= 0.
float log1p(float x);

/// 1 / (1 + e^-x), from the exponential of -|x|.
float sigmoid(float x);

/// log(1 + e^x), and x itself above 20 (the released reference code's rule).
float softplus(float x);

/// x * Phi(x), Phi the normal distribution function: in binary64, rounded once at the end.
float gelu(float x);

struct rotation {
  float cosine = 1;
  float sine = 0;
};

/// Cosine and sine of a binary32 angle in radians, |angle| < 2^31: reduced and evaluated in
/// binary64, rounded once at the end.
rotation rotate_by(float angle);

}  // namespace cedar::kernels::canonical
