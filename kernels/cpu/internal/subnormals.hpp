// Which processors multiply subnormal numbers as quickly as others.
#pragma once

namespace cedar::kernels::cpu {

/// Decides the way only, never a result. AMD's multiply them in full pipelines; Intel's take a
/// microcode assist of some 150 cycles for each, which one code in twenty would cost.
inline bool subnormals_are_quick() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}

}  // namespace cedar::kernels::cpu
