// The residual streams: coefficients of a sublayer, collapse, expand, and all of it in one pass.
//
// One pass means: rows go through in tiles whose streams stay in the second-level cache, so that
// memory sees each stream once as it is read and once as it is written. (Within a row the parts
// follow each other: the projection's order of summation walks stream after stream.)
#include "kernels/cpu/internal/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/streams.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/canonical_math.hpp"
#include "kernels/cpu/internal/norm-inl.hpp"
#include "kernels/cpu/internal/projection-inl.hpp"
#include "kernels/cpu/internal/quantize-inl.hpp"

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

/// Streams that a tile of rows may hold.
inline constexpr std::size_t tile_bytes = std::size_t{1} << 18;

HWY_INLINE std::size_t rows_of_tile(std::size_t stream_elements) {
  return std::max<std::size_t>(1, tile_bytes / (stream_elements * sizeof(bf16)));
}

/// Calls work(first, count, threads) for tiles of `tile` of the rows [0, n): a single tile is the
/// work of all threads, of several each is that of one. `cost` is that of a row.
template <class Work>
HWY_INLINE void for_each_tile(workers threads, std::size_t n, std::size_t tile, std::size_t cost,
                              const Work& work) {
  if (n <= tile) return work(std::size_t{0}, n, threads);
  threads.split(n, tile, cost, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    for (std::size_t at = begin; at < end; at += tile)
      work(at, std::min(tile, end - at), workers{});
  });
}

/// Coefficients of rows [first, first + count).
HWY_INLINE void coefficients_of_tile(const hc_coefficients_arguments& a, std::size_t first,
                                     std::size_t count, workers threads) {
  scratch memory;
  const std::size_t outputs = a.fn.rows;
  const matrix_view<float> projections(memory.take<float>(count * outputs), count, outputs);
  const auto streams = a.streams.rows_from(first, count);
  project(threads, streams, a.fn, projections);
  threads.split(count, 1, 4 * a.streams.cols, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    for (std::size_t row = begin; row < end; ++row)
      split_coefficients(a, first + row, projections.row_data(row),
                         inverse_rms(streams.row_data(row), a.streams.cols, a.rms_epsilon));
  });
}

void hc_coefficients_rows(const hc_coefficients_arguments& a, workers threads) {
  const std::size_t length = a.streams.cols;
  for_each_tile(threads, a.streams.rows, rows_of_tile(length), a.fn.rows * length,
                [&](std::size_t first, std::size_t count, workers each)
                    HWY_ATTR { coefficients_of_tile(a, first, count, each); });
}

HWY_INLINE void collapse_row(const bf16* streams, const float* pre, std::size_t streams_count,
                             std::size_t size, bf16* y) {
  for (std::size_t i = 0; i < size; i += width) {
    auto sum = zero();
    for (std::size_t stream = 0; stream < streams_count; ++stream)
      sum = hn::Add(sum,
                    hn::Mul(set(pre[stream]), load_first(streams + stream * size + i, size - i)));
    store_first(sum, y + i, size - i);
  }
}

void hc_collapse_rows(const hc_collapse_arguments& a, workers threads) {
  const std::size_t size = a.y.cols;
  threads.split(a.y.rows, 1, 4 * a.pre.cols * size,
                [&](std::size_t begin, std::size_t end) HWY_ATTR {
                  for (std::size_t row = begin; row < end; ++row)
                    collapse_row(a.streams.row_data(row), a.pre.row_data(row), a.pre.cols, size,
                                 a.y.row_data(row));
                });
}

/// Expands the row of any number of streams: the old streams are added in ascending order, then
/// post * y; each operation rounded. Those of `width` elements are read before the new ones are
/// written: they may be the same.
HWY_INLINE void expand_row(const hc_expand_arguments& a, std::size_t row) {
  const std::size_t size = a.y.cols;
  const std::size_t streams = a.post.cols;
  scratch memory;
  float* old = memory.take<float>(streams * width);
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
        mixed =
            hn::Add(mixed, hn::Mul(set(combine[stream * streams + k]), load(old + stream * width)));
      store_first(hn::Add(hn::Mul(set(post[k]), y), mixed), a.out.row_data(row) + k * size + i,
                  size - i);
    }
  }
}

/// The released number of streams.
inline constexpr std::size_t four = 4;

/// Expands a row of four streams and, with `pre`, collapses the new ones to `collapsed`: the same
/// operations, on registers.
template <bool Collapse>
HWY_INLINE void mix_four(const hc_expand_arguments& a, std::size_t row, const float* pre,
                         bf16* collapsed) {
  const std::size_t size = a.y.cols;
  const bf16* from = a.streams.row_data(row);
  bf16* to = a.out.row_data(row);
  const bf16* ys = a.y.row_data(row);
  const float* post = a.post.row_data(row);
  const float* combine = a.combine.row_data(row);
  for (std::size_t i = 0; i < size; i += width) {
    const std::size_t count = size - i;
    f32_vector old[four];
    for (std::size_t stream = 0; stream < four; ++stream)
      old[stream] = load_first(from + stream * size + i, count);
    const auto y = load_first(ys + i, count);
    auto sum = zero();
    for (std::size_t k = 0; k < four; ++k) {
      auto mixed = zero();
      for (std::size_t stream = 0; stream < four; ++stream)
        mixed = hn::Add(mixed, hn::Mul(set(combine[stream * four + k]), old[stream]));
      const auto fresh = round_bf16(hn::Add(hn::Mul(set(post[k]), y), mixed));
      store_rounded_first(fresh, to + k * size + i, count);
      if constexpr (Collapse) sum = hn::Add(sum, hn::Mul(set(pre[k]), fresh));
    }
    if constexpr (Collapse) store_first(sum, collapsed + i, count);
  }
}

void hc_expand_rows(const hc_expand_arguments& a, workers threads) {
  const std::size_t streams = a.post.cols;
  threads.split(a.y.rows, 1, 4 * streams * streams * a.y.cols,
                [&](std::size_t begin, std::size_t end) HWY_ATTR {
                  for (std::size_t row = begin; row < end; ++row)
                    streams == four ? mix_four<false>(a, row, nullptr, nullptr)
                                    : expand_row(a, row);
                });
}

/// New streams, and the input of the next sublayer.
HWY_INLINE void mix_row(const hc_transition_arguments& a, std::size_t row) {
  const std::size_t size = a.x.cols;
  bf16* x = a.x.row_data(row);
  if (a.pre.cols == four) {
    mix_four<true>(a.expand, row, a.pre.row_data(row), x);
  } else {
    expand_row(a.expand, row);
    collapse_row(a.expand.out.row_data(row), a.pre.row_data(row), a.pre.cols, size, x);
  }
  normalize_row(x, a.norm.data(), size, a.rms_epsilon, x);
  quantize_fp8_row(x, size, a.codes.row_data(row), a.scales.row_data(row));
}

void hc_transition_rows(const hc_transition_arguments& a, workers threads) {
  const hc_coefficients_arguments coefficients = a.coefficients_part();
  const std::size_t length = coefficients.streams.cols;
  const std::size_t mixing_cost = 6 * a.pre.cols * length;
  for_each_tile(threads, a.x.rows, rows_of_tile(length), mixing_cost + a.fn.rows * length,
                [&](std::size_t first, std::size_t count, workers each) HWY_ATTR {
                  each.split(count, 1, mixing_cost,
                             [&](std::size_t begin, std::size_t end) HWY_ATTR {
                               for (std::size_t row = begin; row < end; ++row)
                                 mix_row(a, first + row);
                             });
                  coefficients_of_tile(coefficients, first, count, each);
                });
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cedar::kernels::cpu {

HWY_EXPORT(hc_coefficients_rows);
HWY_EXPORT(hc_collapse_rows);
HWY_EXPORT(hc_expand_rows);
HWY_EXPORT(hc_transition_rows);

void hc_coefficients(const hc_coefficients_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(hc_coefficients_rows)(arguments, threads);
}

void hc_collapse(const hc_collapse_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(hc_collapse_rows)(arguments, threads);
}

void hc_expand(const hc_expand_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(hc_expand_rows)(arguments, threads);
}

void hc_transition(const hc_transition_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(hc_transition_rows)(arguments, threads);
}

}  // namespace cedar::kernels::cpu
#endif
