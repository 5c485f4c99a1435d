// The fast backend of the host's processor: every kernel with vector instructions, in the canonical
// order of summation (canonical_sum.hpp) and with the canonical functions (canonical_math.hpp), so
// that a result has the same bits on every machine, in every batch and on every instruction set.
#pragma once

#include <memory>

#include "kernels/ops/backend.hpp"

namespace cedar::kernels {

/// True if this machine has what the code is compiled for: x86-64-v3 (AVX2, FMA, F16C, BMI2).
bool cpu_backend_supported();

/// Stateless; usable from several threads at once (each keeps a scratch memory of its own).
/// Requires cpu_backend_supported().
std::unique_ptr<backend> make_cpu_backend();

}  // namespace cedar::kernels
