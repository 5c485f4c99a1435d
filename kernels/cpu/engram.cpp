// The gate of Engram.
#include "kernels/cpu/internal/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engram.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/canonical_math.hpp"
#include "kernels/cpu/internal/norm-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

/// Sum of (x * key) * (q_weight * k_weight): both products of two bf16 numbers are exact.
HWY_INLINE float weighted_dot(const bf16* x, const bf16* key, const bf16* q_weight,
                              const bf16* k_weight, std::size_t size) {
  return sum_elements(size, [&](std::size_t i, std::size_t count, f32_vector lane) HWY_ATTR {
    const auto values = hn::Mul(load_first(x + i, count), load_first(key + i, count));
    const auto weights = hn::Mul(load_first(q_weight + i, count), load_first(k_weight + i, count));
    return hn::MulAdd(values, weights, lane);
  });
}

void engram_gate_rows(const engram_gate_arguments& a, workers threads) {
  const std::size_t size = a.q_weight.cols;
  const std::size_t streams = a.gates.cols;
  const float inverse_root = 1.0F / std::sqrt(static_cast<float>(size));
  threads.split(
      a.gates.rows, 1, 16 * streams * size, [&](std::size_t begin, std::size_t end) HWY_ATTR {
        for (std::size_t row = begin; row < end; ++row) {
          const bf16* keys = a.key_values.row_data(row);
          const bf16* value = keys + streams * size;
          for (std::size_t k = 0; k < streams; ++k) {
            const bf16* x = a.streams.row_data(row) + k * size;
            const bf16* key = keys + k * size;
            float rho = weighted_dot(x, key, a.q_weight.row_data(k), a.k_weight.row_data(k), size);
            rho *= inverse_rms(x, size, a.epsilon);
            rho *= inverse_rms(key, size, a.epsilon);
            rho *= inverse_root;
            const float root = std::sqrt(std::max(std::fabs(rho), 1e-6F));
            const float gate =
                a.image_rows[row] != 0 ? 0.0F : canonical::sigmoid(std::copysign(root, rho));
            a.gates.row_data(row)[k] = gate;
            for (std::size_t i = 0; i < size; i += width)
              store_first(hn::Add(load_first(x + i, size - i),
                                  hn::Mul(set(gate), load_first(value + i, size - i))),
                          a.out.row_data(row) + k * size + i, size - i);
          }
        }
      });
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cedar::kernels::cpu {

HWY_EXPORT(engram_gate_rows);

void engram_gate(const engram_gate_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(engram_gate_rows)(arguments, threads);
}

}  // namespace cedar::kernels::cpu
#endif
