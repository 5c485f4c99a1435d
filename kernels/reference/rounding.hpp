// The one rounding between the double results of this backend and the tensors it fills.
#pragma once

#include "kernels/base/dtype.hpp"

namespace cedar::kernels::reference {

/// Exact.
double widen(bf16 value) noexcept;

/// The nearest bf16, ties to even, in one rounding: going through float first would round twice.
bf16 round_bf16(double value) noexcept;

}  // namespace cedar::kernels::reference
