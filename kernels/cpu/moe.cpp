// Mixture of experts: gate scores, the activation of an expert, the sum over experts.
#include "kernels/cpu/internal/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/moe.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/internal/math-inl.hpp"
#include "kernels/cpu/internal/quantize-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

void gate_scores_rows(const gate_scores_arguments& a, workers threads) {
  threads.split(
      a.scores.rows, 1, 32 * a.scores.cols, [&](std::size_t begin, std::size_t end) HWY_ATTR {
        for (std::size_t row = begin; row < end; ++row) {
          float* scores = a.scores.row_data(row);
          for (std::size_t i = 0; i < a.scores.cols; i += width) {
            const std::size_t count = a.scores.cols - i;
            store_first(hn::Sqrt(softplus(load_first(scores + i, count))), scores + i, count);
          }
        }
      });
}

/// (silu(gate) * up) * weight, silu(x) = x * sigmoid(x), of `width` elements of a row. Bounds come
/// first in Min and Max: a NaN in the second operand passes.
struct activation {
  float limit;
  bool round_silu;

  HWY_INLINE void operator()(const bf16* gates, const bf16* ups, float weight, std::size_t count,
                             bf16* y) const {
    auto gate = load_first(gates, count);
    auto up = load_first(ups, count);
    if (limit > 0) {
      gate = hn::Min(set(limit), gate);
      up = hn::Max(set(-limit), hn::Min(set(limit), up));
    }
    auto silu = hn::Mul(gate, sigmoid(gate));
    if (round_silu) silu = round_bf16(silu);
    store_first(hn::Mul(hn::Mul(silu, up), set(weight)), y, count);
  }
};

HWY_INLINE float weight_of(std::span<const float> route_weights, std::size_t row) {
  return route_weights.empty() ? 1.0F : route_weights[row];
}

void swiglu_rows(const swiglu_arguments& a, workers threads) {
  const activation activate{a.limit, a.round_silu};
  threads.split(a.y.rows, 1, 16 * a.y.cols, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    for (std::size_t row = begin; row < end; ++row)
      for (std::size_t i = 0; i < a.y.cols; i += width)
        activate(a.gate.row_data(row) + i, a.up.row_data(row) + i, weight_of(a.route_weights, row),
                 a.y.cols - i, a.y.row_data(row) + i);
  });
}

/// Group by group: 32 results wait in the first-level cache to be quantised.
void swiglu_quantize_rows(const swiglu_quantize_arguments& a, workers threads) {
  const activation activate{a.limit, false};
  threads.split(a.gate.rows, 1, 24 * a.gate.cols, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    for (std::size_t row = begin; row < end; ++row)
      for (std::size_t group = 0; group < a.scales.cols; ++group) {
        bf16 hidden[32];
        for (std::size_t i = 0; i < 32; i += width)
          activate(a.gate.row_data(row) + 32 * group + i, a.up.row_data(row) + 32 * group + i,
                   weight_of(a.route_weights, row), width, hidden + i);
        a.scales.row_data(row)[group] =
            quantize_fp8_group(hidden, a.codes.row_data(row) + 32 * group);
      }
  });
}

void moe_combine_rows(const moe_combine_arguments& a, workers threads) {
  threads.split(a.y.rows, 1, 4 * a.parts_per_row * a.y.cols,
                [&](std::size_t begin, std::size_t end) HWY_ATTR {
                  for (std::size_t row = begin; row < end; ++row) {
                    const bf16* const* parts_of_row = a.parts.data() + row * a.parts_per_row;
                    for (std::size_t i = 0; i < a.y.cols; i += width) {
                      const std::size_t count = a.y.cols - i;
                      auto sum = load_first(parts_of_row[0] + i, count);
                      for (std::size_t part = 1; part < a.parts_per_row; ++part)
                        sum = hn::Add(sum, load_first(parts_of_row[part] + i, count));
                      store_first(sum, a.y.row_data(row) + i, count);
                    }
                  }
                });
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cedar::kernels::cpu {

HWY_EXPORT(gate_scores_rows);
HWY_EXPORT(swiglu_rows);
HWY_EXPORT(swiglu_quantize_rows);
HWY_EXPORT(moe_combine_rows);

void gate_scores(const gate_scores_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(gate_scores_rows)(arguments, threads);
}

void swiglu(const swiglu_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(swiglu_rows)(arguments, threads);
}

void swiglu_quantize(const swiglu_quantize_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(swiglu_quantize_rows)(arguments, threads);
}

void moe_combine(const moe_combine_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(moe_combine_rows)(arguments, threads);
}

}  // namespace cedar::kernels::cpu
#endif
