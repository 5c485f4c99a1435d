// What only the vision tower computes, but for its attention (attention.cpp).
#include "kernels/cpu/internal/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vision.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/canonical_math.hpp"
#include "kernels/cpu/internal/lanes-inl.hpp"
#include "kernels/cpu/internal/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

/// Of a distribution function (internal/workers.hpp).
inline constexpr std::size_t gelu_cost = 250;

/// Cosines and sines of a row's angles, those of its patch row first.
HWY_INLINE void fill_rotation(const rope_2d_arguments& a, std::size_t row, float* cosines,
                              float* sines) {
  const std::size_t quarter = a.frequencies.size();
  for (std::size_t i = 0; i < 2 * quarter; ++i) {
    const auto position = static_cast<float>(i < quarter ? a.rows[row] : a.columns[row]);
    // The product is rounded to binary32 first: the angle is that number.
    const canonical::rotation angle = canonical::rotate_by(position * a.frequencies[i % quarter]);
    cosines[i] = angle.cosine;
    sines[i] = angle.sine;
  }
}

/// Both elements of a pair, each operation rounded.
void rope_2d_rows(const rope_2d_arguments& a, workers threads) {
  const std::size_t half = a.head_dim / 2;
  threads.split(a.x.rows, 1, 4 * a.x.cols, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    scratch memory;
    float* cosines = memory.take<float>(half);
    float* sines = memory.take<float>(half);
    for (std::size_t row = begin; row < end; ++row) {
      fill_rotation(a, row, cosines, sines);
      for (std::size_t first = 0; first < a.x.cols; first += a.head_dim) {
        bf16* left = a.x.row_data(row) + first;
        bf16* right = left + half;
        for (std::size_t i = 0; i < half; i += width) {
          const std::size_t count = half - i;
          const auto cosine = load_first(cosines + i, count);
          const auto sine = load_first(sines + i, count);
          const auto x = load_first(left + i, count);
          const auto y = load_first(right + i, count);
          store_first(hn::Sub(hn::Mul(x, cosine), hn::Mul(y, sine)), left + i, count);
          store_first(hn::Add(hn::Mul(y, cosine), hn::Mul(x, sine)), right + i, count);
        }
      }
    }
  });
}

void gelu_rows(const gelu_arguments& a, workers threads) {
  threads.split(a.y.rows, 1, gelu_cost * a.y.cols,
                [&](std::size_t begin, std::size_t end) HWY_ATTR {
                  for (std::size_t row = begin; row < end; ++row)
                    for (std::size_t i = 0; i < a.y.cols; i += width) {
                      const std::size_t count = a.y.cols - i;
                      float values[width];
                      store(load_first(a.x.row_data(row) + i, count), values);
                      for (float& value : values) value = canonical::gelu(value);
                      store_first(load(values), a.y.row_data(row) + i, count);
                    }
                });
}

void add_rows(const add_arguments& a, workers threads) {
  threads.split(a.y.rows, 1, 4 * a.y.cols, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    for (std::size_t row = begin; row < end; ++row)
      for (std::size_t i = 0; i < a.y.cols; i += width) {
        const std::size_t count = a.y.cols - i;
        store_first(hn::Add(load_first(a.a.row_data(row) + i, count),
                            load_first(a.b.row_data(row) + i, count)),
                    a.y.row_data(row) + i, count);
      }
  });
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cedar::kernels::cpu {

HWY_EXPORT(rope_2d_rows);
HWY_EXPORT(gelu_rows);
HWY_EXPORT(add_rows);

void rope_2d(const rope_2d_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(rope_2d_rows)(arguments, threads);
}

void gelu(const gelu_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(gelu_rows)(arguments, threads);
}

void add(const add_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(add_rows)(arguments, threads);
}

}  // namespace cedar::kernels::cpu
#endif
