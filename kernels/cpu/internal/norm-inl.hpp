// The RMS statistic of a row, and its norm.
#if defined(CEDAR_KERNELS_CPU_NORM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CEDAR_KERNELS_CPU_NORM_INL
#undef CEDAR_KERNELS_CPU_NORM_INL
#else
#define CEDAR_KERNELS_CPU_NORM_INL
#endif

#include <cmath>

#include "kernels/cpu/internal/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

/// 1 / sqrt(mean(x^2) + epsilon); the sum in canonical order, then one division by `size`, one
/// addition, one square root and one division, each rounded.
HWY_INLINE float inverse_rms(const bf16* x, std::size_t size, float epsilon) {
  const float squares =
      sum_elements(size, [x](std::size_t i, std::size_t count, f32_vector lane) HWY_ATTR {
        const auto values = load_first(x + i, count);
        return hn::MulAdd(values, values, lane);
      });
  return 1.0F / std::sqrt(squares / static_cast<float>(size) + epsilon);
}

/// w * (x * r) of one row; y may be x.
HWY_INLINE void normalize_row(const bf16* x, const bf16* weight, std::size_t size, float epsilon,
                              bf16* y) {
  const auto factor = set(inverse_rms(x, size, epsilon));
  for (std::size_t i = 0; i < size; i += width) {
    const auto normed = hn::Mul(load_first(x + i, size - i), factor);
    store_first(hn::Mul(load_first(weight + i, size - i), normed), y + i, size - i);
  }
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
