// Bounds derived from reduction length and rounding unit, and the checks that apply them.
//
// Three ideas carry every bound (kernels/README.md lists them per operation):
// 1. A sum of products in binary32, in the canonical order of 16 lanes, is off by at most
//    sum_error(length) times the sum of the magnitudes of its terms: every term passes through at
//    most length/16 additions of its lane, 4 of the tree and 3 between segments.
// 2. An error before the rounding to bf16 moves the result by itself plus at most one bf16 step:
// the
//    step occurs only if a rounding boundary lies between the two values.
// 3. That is rare, so almost all elements must be equal; how many may differ is bounded as well.
//    Without this a truncation instead of a rounding would pass.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/base/dtype.hpp"

namespace cedar::test {

/// Rounding unit of binary32.
inline constexpr double unit = 1.0 / (1 << 24);
/// Largest relative error of exp, sigmoid, softplus and 1/sqrt: 2.5 binary32 ulp of two units each.
inline constexpr double function_error = 5 * unit;
/// The smallest normal binary32 number: results below it may lose all their bits.
inline constexpr double tiny = 0x1p-126;
/// Share of bf16 elements that may differ at all. The error before rounding behaves like a random
/// walk of `length` steps, sqrt(length) * unit, against the distance 2^-8 between roundings: 0.1 %
/// of the elements at length 5120. 2 % leaves room for sums that are smaller than their terms.
inline constexpr double usual_share = 0.02;

/// Error of a sum of `length` products, relative to the sum of the magnitudes of its terms.
double sum_error(std::size_t length);

/// fp32 results: |actual - expected| <= errors, plus the rounding of `expected` itself.
bool check_float(std::string_view what, std::span<const float> actual,
                 std::span<const float> expected, std::span<const double> errors);

/// bf16 results against the judge's fp32 result of the same formula: within errors plus half a
/// step.
bool check_rounding(std::string_view what, std::span<const kernels::bf16> actual,
                    std::span<const float> exact, std::span<const double> errors);

/// bf16 results against the judge's bf16 results: within errors plus one step, and at most 2 +
/// `share` of the elements different at all.
bool check_half(std::string_view what, std::span<const kernels::bf16> actual,
                std::span<const kernels::bf16> expected, std::span<const double> errors,
                double share = usual_share);

/// factor * |value| + floor for every value.
std::vector<double> scaled(double factor, std::span<const float> values, double floor = 0);
std::vector<double> scaled(double factor, std::span<const kernels::bf16> values, double floor = 0);

}  // namespace cedar::test
