// The residual streams: coefficients of a sublayer, collapse, expand.
#include "kernels/cpu/internal/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/streams.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/canonical_math.hpp"
#include "kernels/cpu/internal/norm-inl.hpp"
#include "kernels/cpu/internal/product-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

/// c [streams, streams]: every element divided by its row's (or column's) sum + epsilon. Sums are
/// sequential, in ascending order. `across` is the distance of summed elements.
HWY_INLINE void divide_by_sums(float* c, std::size_t streams, std::size_t along, std::size_t across,
                               float epsilon) {
  for (std::size_t line = 0; line < streams; ++line) {
    float* first = c + line * along;
    float sum = 0;
    for (std::size_t i = 0; i < streams; ++i) sum += first[i * across];
    const float divisor = sum + epsilon;
    for (std::size_t i = 0; i < streams; ++i) first[i * across] /= divisor;
  }
}

/// Softmax of each row, plus epsilon.
HWY_INLINE void softmax_rows(float* c, std::size_t streams, float epsilon) {
  for (std::size_t row = 0; row < streams; ++row) {
    float* first = c + row * streams;
    float largest = first[0];
    for (std::size_t i = 1; i < streams; ++i) largest = std::max(largest, first[i]);
    float sum = 0;
    for (std::size_t i = 0; i < streams; ++i) {
      first[i] = canonical::exp(first[i] - largest);
      sum += first[i];
    }
    for (std::size_t i = 0; i < streams; ++i) first[i] = first[i] / sum + epsilon;
  }
}

/// The coefficients of one row from its projections m [(2 + streams) * streams].
HWY_INLINE void split_coefficients(const hc_coefficients_arguments& a, std::size_t row,
                                   const float* projections, float factor) {
  const std::size_t streams = a.pre.cols;
  const auto logit = [&](std::size_t index, std::size_t group) {
    return projections[index] * factor * a.scale[group] + a.base[index];
  };
  for (std::size_t i = 0; i < streams; ++i) {
    a.pre.row_data(row)[i] = canonical::sigmoid(logit(i, 0)) + a.epsilon;
    a.post.row_data(row)[i] = 2.0F * canonical::sigmoid(logit(streams + i, 1));
  }
  float* combine = a.combine.row_data(row);
  for (std::size_t i = 0; i < streams * streams; ++i) combine[i] = logit(2 * streams + i, 2);
  softmax_rows(combine, streams, a.epsilon);
  divide_by_sums(combine, streams, 1, streams, a.epsilon);
  for (std::size_t round = 1; round < a.iterations; ++round) {
    divide_by_sums(combine, streams, streams, 1, a.epsilon);
    divide_by_sums(combine, streams, 1, streams, a.epsilon);
  }
}

void hc_coefficients_rows(const hc_coefficients_arguments& a, workers threads) {
  const std::size_t rows = a.streams.rows;
  const std::size_t outputs = a.fn.rows;
  scratch memory;
  const matrix_view<float> projections(memory.take<float>(rows * outputs), rows, outputs);
  multiply(threads, plain_rows<bf16>{a.streams}, rows, a.streams.cols, plain_rows<float>{a.fn},
           outputs, 1, matrix_sink<float>{projections});
  threads.split(rows, 1, 4 * a.streams.cols, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    for (std::size_t row = begin; row < end; ++row)
      split_coefficients(a, row, projections.row_data(row),
                         inverse_rms(a.streams.row_data(row), a.streams.cols, a.rms_epsilon));
  });
}

void hc_collapse_rows(const hc_collapse_arguments& a, workers threads) {
  const std::size_t size = a.y.cols;
  threads.split(
      a.y.rows, 1, 4 * a.pre.cols * size, [&](std::size_t begin, std::size_t end) HWY_ATTR {
        for (std::size_t row = begin; row < end; ++row) {
          const bf16* streams = a.streams.row_data(row);
          const float* pre = a.pre.row_data(row);
          for (std::size_t i = 0; i < size; i += width) {
            auto sum = zero();
            for (std::size_t stream = 0; stream < a.pre.cols; ++stream)
              sum = hn::Add(sum, hn::Mul(set(pre[stream]),
                                         load_first(streams + stream * size + i, size - i)));
            store_first(sum, a.y.row_data(row) + i, size - i);
          }
        }
      });
}

/// The old streams are added in ascending order, then post * y; each operation rounded. The old
/// streams of `width` elements are read before the new ones are written: they may be the same.
void hc_expand_rows(const hc_expand_arguments& a, workers threads) {
  const std::size_t size = a.y.cols;
  const std::size_t streams = a.post.cols;
  threads.split(
      a.y.rows, 1, 4 * streams * streams * size, [&](std::size_t begin, std::size_t end) HWY_ATTR {
        scratch memory;
        float* old = memory.take<float>(streams * width);
        for (std::size_t row = begin; row < end; ++row) {
          const float* post = a.post.row_data(row);
          const float* combine = a.combine.row_data(row);
          for (std::size_t i = 0; i < size; i += width) {
            for (std::size_t stream = 0; stream < streams; ++stream)
              store(load_first(a.streams.row_data(row) + stream * size + i, size - i),
                    old + stream * width);
            const auto y = load_first(a.y.row_data(row) + i, size - i);
            for (std::size_t k = 0; k < streams; ++k) {
              auto mixed = zero();
              for (std::size_t stream = 0; stream < streams; ++stream)
                mixed = hn::Add(
                    mixed, hn::Mul(set(combine[stream * streams + k]), load(old + stream * width)));
              store_first(hn::Add(hn::Mul(set(post[k]), y), mixed),
                          a.out.row_data(row) + k * size + i, size - i);
            }
          }
        }
      });
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cedar::kernels::cpu {

HWY_EXPORT(hc_coefficients_rows);
HWY_EXPORT(hc_collapse_rows);
HWY_EXPORT(hc_expand_rows);

void hc_coefficients(const hc_coefficients_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(hc_coefficients_rows)(arguments, threads);
}

void hc_collapse(const hc_collapse_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(hc_collapse_rows)(arguments, threads);
}

void hc_expand(const hc_expand_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(hc_expand_rows)(arguments, threads);
}

}  // namespace cedar::kernels::cpu
#endif
