// Scores of attention: products of a row's heads with entries, times the scale.
//
// Entries are dequantised a strip at a time, never once per head. With 512-bit registers there is a
// register tile of its own: four heads with four entries, whose sixteen trees are added together
// (one by one they would cost a third of the products of 512 columns). Else the product of linear
// layers.
#if defined(CEDAR_KERNELS_CPU_SCORES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CEDAR_KERNELS_CPU_SCORES_INL
#undef CEDAR_KERNELS_CPU_SCORES_INL
#else
#define CEDAR_KERNELS_CPU_SCORES_INL
#endif

#include <algorithm>

#include "kernels/cpu/internal/product-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

HWY_INLINE std::size_t round_up(std::size_t count, std::size_t unit) {
  return (count + unit - 1) / unit * unit;
}

/// Working memory of a row.
struct row_state {
  std::size_t heads = 0;
  std::size_t head_dim = 0;
  std::size_t entries = 0;
  std::size_t columns = 0;  ///< entries, rounded up to 16
  std::size_t channels = 0;  ///< head_dim, rounded up to 16
  float* queries = nullptr;  ///< [heads rounded up to 4, head_dim rounded up to 32]
  float* scores = nullptr;  ///< [heads, columns], then probabilities
  float* denominators = nullptr;  ///< [heads]
  float* sums = nullptr;  ///< [heads, channels]
};

/// Dequantises a row of `size` elements to binary32, zeros up to a whole block.
template <class Rows>
HWY_INLINE void decode_row(const Rows& rows, std::size_t row, std::size_t size, float* out) {
  for_each_block(rows, rows.row(row), 0, size,
                 [&](std::size_t k, const lanes16(&values)[2]) HWY_ATTR {
                   for (std::size_t half = 0; half < 2; ++half)
                     for (std::size_t p = 0; p < parts; ++p)
                       store(values[half].part[p], out + k + 16 * half + p * width);
                 });
}

/// Asks for entries [begin, end): each lies somewhere else, so that the processor does not foresee
/// them. Other rows lie side by side.
template <class Rows>
HWY_INLINE void prefetch_entries(const Rows& rows, std::size_t begin, std::size_t end) {
  if constexpr (requires { rows.codes_bytes; })
    for (std::size_t e = begin; e < end; ++e)
      for (std::size_t byte = 0; byte <= rows.codes_bytes; byte += 64)
        __builtin_prefetch(rows.row(e).codes + byte);
}

#if HWY_TARGET <= HWY_AVX3
/// Heads and entries of the register tile of the scores, and entries that are decoded together.
inline constexpr std::size_t score_tile = 4;
inline constexpr std::size_t score_strip = 8;

/// The trees of four heads with four entries: lanes [entry][head]. Block h of the result has head
/// h's four sums.
HWY_INLINE f32_vector add_tile(const f32_vector (&lanes)[score_tile][score_tile]) {
  __m512 four[score_tile];
  for (std::size_t e = 0; e < score_tile; ++e) {
    const auto halves = [&](std::size_t head) HWY_ATTR {
      const __m512 a = lanes[e][head].raw;
      const __m512 b = lanes[e][head + 1].raw;
      return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    };
    const __m512 low = halves(0);
    const __m512 high = halves(2);
    four[e] =
        _mm512_add_ps(_mm512_shuffle_f32x4(low, high, 0x88), _mm512_shuffle_f32x4(low, high, 0xdd));
  }
  const auto pairs = [&](std::size_t e) HWY_ATTR {
    const __m512d a = _mm512_castps_pd(four[e]);
    const __m512d b = _mm512_castps_pd(four[e + 1]);
    return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                         _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  };
  const __m512 low = pairs(0);
  const __m512 high = pairs(2);
  return f32_vector{
      _mm512_add_ps(_mm512_shuffle_ps(low, high, 0x88), _mm512_shuffle_ps(low, high, 0xdd))};
}

/// Scores of heads head .. head+3 with four decoded entries; to scores [head][first ..].
HWY_INLINE void score_heads(const row_state& state, std::size_t length, const float* entries,
                            std::size_t head, float scale, std::size_t first, std::size_t count) {
  const float* q = state.queries + head * length;
  f32_vector lanes[score_tile][score_tile];
  for (auto& entry : lanes)
    for (auto& sum : entry) sum = zero();
  for (std::size_t k = 0; k < length; k += width) {
    f32_vector heads[score_tile];
    HWY_UNROLL(4)
    for (std::size_t h = 0; h < score_tile; ++h) heads[h] = load(q + h * length + k);
    HWY_UNROLL(4)
    for (std::size_t e = 0; e < score_tile; ++e) {
      const f32_vector entry = load(entries + e * length + k);
      HWY_UNROLL(4)
      for (std::size_t h = 0; h < score_tile; ++h)
        lanes[e][h] = hn::MulAdd(entry, heads[h], lanes[e][h]);
    }
  }
  const f32_vector sums = hn::Mul(add_tile(lanes), set(scale));
  float* scores = state.scores + head * state.columns + first;
  if (HWY_LIKELY(count == score_tile && head + score_tile <= state.heads)) {
    _mm_storeu_ps(scores, _mm512_castps512_ps128(sums.raw));
    _mm_storeu_ps(scores + state.columns, _mm512_extractf32x4_ps(sums.raw, 1));
    _mm_storeu_ps(scores + 2 * state.columns, _mm512_extractf32x4_ps(sums.raw, 2));
    _mm_storeu_ps(scores + 3 * state.columns, _mm512_extractf32x4_ps(sums.raw, 3));
    return;
  }
  float all[width];
  store(sums, all);
  for (std::size_t h = 0; h < score_tile && head + h < state.heads; ++h)
    for (std::size_t e = 0; e < count; ++e) scores[h * state.columns + e] = all[h * score_tile + e];
}

/// Scores of entries [begin, end) of a list whose first is number `offset` of all.
template <class Rows>
HWY_NOINLINE void score_entries(const row_state& state, const Rows& rows, std::size_t begin,
                                std::size_t end, std::size_t offset, float scale) {
  const std::size_t length = round_up(state.head_dim, block_size);
  scratch memory;
  float* decoded = memory.take<float>(score_strip * length);
  for (std::size_t first = begin; first < end; first += score_strip) {
    prefetch_entries(rows, std::min(first + score_strip, end),
                     std::min(first + 2 * score_strip, end));
    for (std::size_t e = 0; e < score_strip; ++e)
      decode_row(rows, std::min(first + e, end - 1), state.head_dim, decoded + e * length);
    for (std::size_t head = 0; head < state.heads; head += score_tile)
      for (std::size_t e = 0; e < score_strip && first + e < end; e += score_tile)
        score_heads(state, length, decoded + e * length, head, scale, offset + first + e,
                    std::min(score_tile, end - first - e));
  }
}

/// Brings the queries, one row a head, into the state; memory from `frame`.
template <class Queries>
HWY_INLINE void take_queries(scratch& frame, row_state& state, const Queries& q) {
  const std::size_t length = round_up(state.head_dim, block_size);
  const std::size_t heads = round_up(state.heads, score_tile);
  state.queries = frame.take<float>(heads * length);
  for (std::size_t head = 0; head < state.heads; ++head)
    decode_row(q, head, state.head_dim, state.queries + head * length);
  std::fill(state.queries + state.heads * length, state.queries + heads * length, 0.0F);
}

/// Scores of all heads with `count` entries, the first of which is number `offset` of all.
template <class Queries, class Rows>
HWY_INLINE void score_list(workers threads, const row_state& state, const Queries&,
                           const Rows& rows, std::size_t count, std::size_t offset, float scale) {
  threads.split(count, score_strip, output_cost(state.heads, state.head_dim),
                [&](std::size_t begin, std::size_t end)
                    HWY_ATTR { score_entries(state, rows, begin, end, offset, scale); });
}
#else
/// Products to scores.
struct score_sink {
  matrix_sink<float> scores;
  float scale;

  HWY_INLINE void operator()(std::size_t row, std::size_t first, std::size_t count,
                             four_vector sums) const {
    scores(row, first, count, hn::Mul(sums, hn::Set(four_tag{}, scale)));
  }
};

template <class Queries>
HWY_INLINE void take_queries(scratch&, row_state&, const Queries&) {}

template <class Queries, class Rows>
HWY_INLINE void score_list(workers threads, const row_state& state, const Queries& q,
                           const Rows& rows, std::size_t count, std::size_t offset, float scale) {
  prefetch_entries(rows, 0, count);
  const matrix_view<float> scores(state.scores, state.heads, state.columns);
  multiply(threads, q, state.heads, state.head_dim, rows, count, 1,
           score_sink{{scores.cols_from(offset, count)}, scale});
}
#endif

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
