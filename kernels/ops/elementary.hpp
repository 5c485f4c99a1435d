// Natural logarithm and exponential in binary64, from IEEE additions, multiplications and divisions
// in a fixed order: every machine and every compiler gets the same bits. Never the host's libm.
// Part of the numerics (numerics.hpp). Errors (measured by its test): below
// 1 ulp each.
//
// For choices between tokens, which everybody must make alike; layers compute in binary32, with the
// functions of their backend.
#pragma once

namespace cedar::kernels {

/// ln x of a positive normal number.
double natural_log(double x);

/// e^x for x <= 0, -infinity included; 0 below -708 (where results would no longer be normal).
double natural_exp(double x);

}  // namespace cedar::kernels
