// Whole quotients, upwards.
#pragma once

namespace cedar::kernels::plan {

/// Of what is not negative; b > 0.
template <class T>
constexpr T quotient_up(T a, T b) {
  return (a + b - 1) / b;
}

/// The least multiple of b that is not below a.
template <class T>
constexpr T round_up(T a, T b) {
  return quotient_up(a, b) * b;
}

}  // namespace cedar::kernels::plan
