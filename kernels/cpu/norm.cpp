// RMS normalisation and rotary positions.
#include "kernels/cpu/internal/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norm.cpp"
#include <hwy/foreach_target.h>

#include <cmath>

#include "kernels/cpu/canonical_math.hpp"
#include "kernels/cpu/internal/norm-inl.hpp"
#include "kernels/cpu/internal/quantize-inl.hpp"
#include "kernels/cpu/internal/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

void rms_norm_rows(const rms_norm_arguments& a, workers threads) {
  const std::size_t size = a.x.cols;
  threads.split(a.x.rows, 1, 4 * size, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    for (std::size_t row = begin; row < end; ++row)
      normalize_row(a.x.row_data(row), a.weight.data(), size, a.epsilon, a.y.row_data(row));
  });
}

void rms_norm_quantize_rows(const rms_norm_quantize_arguments& a, workers threads) {
  const auto& [y, x, weight, epsilon] = a.norm;
  threads.split(x.rows, 1, 12 * x.cols, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    for (std::size_t row = begin; row < end; ++row) {
      normalize_row(x.row_data(row), weight.data(), x.cols, epsilon, y.row_data(row));
      quantize_fp8_row(y.row_data(row), x.cols, a.codes.row_data(row), a.scales.row_data(row));
    }
  });
}

/// Cosines (each twice) and sines (negative for the even element of a pair) of a row's angles.
HWY_INLINE void fill_rotation(const rope_arguments& a, std::size_t row, float* cosines,
                              float* sines) {
  for (std::size_t i = 0; i < a.frequencies.size(); ++i) {
    // The product is rounded to binary32 first: the angle is that number.
    const canonical::rotation angle =
        canonical::rotate_by(static_cast<float>(a.positions[row]) * a.frequencies[i]);
    const float sine = a.inverse ? -angle.sine : angle.sine;
    cosines[2 * i] = angle.cosine;
    cosines[2 * i + 1] = angle.cosine;
    sines[2 * i] = -sine;
    sines[2 * i + 1] = sine;
  }
}

/// Both elements of a pair: x_i' = x_i * cosine + x_other * sine of i, each operation rounded.
void rope_rows(const rope_arguments& a, workers threads) {
  const std::size_t rotated = 2 * a.frequencies.size();
  if (rotated == 0) return;
  threads.split(a.x.rows, 1, 4 * a.x.cols, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    scratch memory;
    float* cosines = memory.take<float>(rotated + width);
    float* sines = memory.take<float>(rotated + width);
    for (std::size_t row = begin; row < end; ++row) {
      fill_rotation(a, row, cosines, sines);
      for (std::size_t head_end = a.head_dim; head_end <= a.x.cols; head_end += a.head_dim) {
        bf16* x = a.x.row_data(row) + head_end - rotated;
        for (std::size_t i = 0; i < rotated; i += width) {
          const auto values = load_first(x + i, rotated - i);
          const auto others = hn::Mul(hn::Shuffle2301(values), load_first(sines + i, rotated - i));
          const auto scaled = hn::Mul(values, load_first(cosines + i, rotated - i));
          store_first(hn::Add(scaled, others), x + i, rotated - i);
        }
      }
    }
  });
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cedar::kernels::cpu {

HWY_EXPORT(rms_norm_rows);
HWY_EXPORT(rms_norm_quantize_rows);
HWY_EXPORT(rope_rows);

void rms_norm(const rms_norm_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(rms_norm_rows)(arguments, threads);
}

void rms_norm_quantize(const rms_norm_quantize_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(rms_norm_quantize_rows)(arguments, threads);
}

void rope(const rope_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(rope_rows)(arguments, threads);
}

}  // namespace cedar::kernels::cpu
#endif
