// Softmax and value product of attention; scores-inl.hpp has the scores.
//
// A row's heads stand side by side. Entries are dequantised a tile at a time, in the cache, a
// second time after the scores, but never once per head.
#if defined(CEDAR_KERNELS_CPU_ATTENTION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CEDAR_KERNELS_CPU_ATTENTION_INL
#undef CEDAR_KERNELS_CPU_ATTENTION_INL
#else
#define CEDAR_KERNELS_CPU_ATTENTION_INL
#endif

#include <algorithm>
#include <limits>

#include "kernels/cpu/canonical_math.hpp"
#include "kernels/cpu/internal/math-inl.hpp"
#include "kernels/cpu/internal/scores-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

inline constexpr float lowest_maximum = -1e30F;
/// Entries and channels that are dequantised together for the value product: 16 KiB of binary32, or
/// 32 where L1 caches have 48.
inline constexpr std::size_t value_tile = width == 16 ? 128 : 64;
inline constexpr std::size_t value_group = 64;
/// Register tile of the value product: chains that hide the latency, and share loads both ways.
inline constexpr std::size_t value_heads = 6;
inline constexpr std::size_t value_vectors = width == 16 ? 4 : 2;
/// Of an exponential (internal/workers.hpp).
inline constexpr std::size_t exp_cost = 8;

// --------------------------------------------------------------------------

/// Scores to bf16 probabilities in place; returns the denominator.
HWY_INLINE float softmax(float* scores, std::size_t entries, std::size_t columns, float sink) {
  std::fill(scores + entries, scores + columns, -std::numeric_limits<float>::infinity());
  auto largest = set(lowest_maximum);
  for (std::size_t e = 0; e < columns; e += width) largest = hn::Max(largest, load(scores + e));
  const float maximum = hn::GetLane(hn::MaxOfLanes(f32_tag{}, largest));
  const float sum =
      sum_elements(columns, [&](std::size_t e, std::size_t, f32_vector lane) HWY_ATTR {
        const auto probability = exp(hn::Sub(load(scores + e), set(maximum)));
        store(round_bf16(probability), scores + e);
        return hn::Add(lane, probability);
      });
  return sum + canonical::exp(sink - maximum);
}

/// sums[Heads][Vectors * width channels] += probabilities x values over `count` entries in order.
template <std::size_t Heads, std::size_t Vectors>
HWY_INLINE void add_values(const float* values, std::size_t count, const float* probabilities,
                           std::size_t columns, float* sums, std::size_t channels) {
  f32_vector chains[Heads][Vectors];
  for (std::size_t h = 0; h < Heads; ++h)
    for (std::size_t v = 0; v < Vectors; ++v) chains[h][v] = load(sums + h * channels + v * width);
  for (std::size_t e = 0; e < count; ++e) {
    f32_vector value[Vectors];
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < Vectors; ++v) value[v] = load(values + (e * Vectors + v) * width);
    HWY_UNROLL(8)
    for (std::size_t h = 0; h < Heads; ++h) {
      const auto probability = set(probabilities[h * columns + e]);
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < Vectors; ++v)
        chains[h][v] = hn::MulAdd(probability, value[v], chains[h][v]);
    }
  }
  for (std::size_t h = 0; h < Heads; ++h)
    for (std::size_t v = 0; v < Vectors; ++v) store(chains[h][v], sums + h * channels + v * width);
}

/// Channels [begin, end) of a row; both whole blocks of 16 but for the end of a head.
struct channel_range {
  std::size_t begin = 0;
  std::size_t end = 0;
  float* values = nullptr;  ///< [value_tile * value_group]: a tile of entries and channels
};

/// Adds a dequantised tile [value_tile][Vectors * width], from channel `c` and from entry `first`
/// of the list on, to all heads.
template <std::size_t Vectors>
HWY_NOINLINE void add_value_tile(const row_state& state, const float* values, std::size_t c,
                                 std::size_t first, std::size_t count) {
  std::size_t head = 0;
  const auto add = [&]<std::size_t Heads>() HWY_ATTR {
    add_values<Heads, Vectors>(values, count, state.scores + head * state.columns + first,
                               state.columns, state.sums + head * state.channels + c,
                               state.channels);
    head += Heads;
  };
  while (head + value_heads <= state.heads) add.template operator()<value_heads>();
  while (head + 2 <= state.heads) add.template operator()<2>();
  if (head < state.heads) add.template operator()<1>();
}

/// Channels [begin, end) of entries first .. first+count-1 as tiles of Vectors * width channels.
template <std::size_t Vectors, class Rows>
HWY_INLINE void decode_values(const Rows& rows, std::size_t first, std::size_t count,
                              std::size_t begin, std::size_t end, float* values) {
  constexpr std::size_t tile_channels = Vectors * width;
  for (std::size_t e = 0; e < count; ++e)
    for_each_block(rows, rows.row(first + e), begin, end,
                   [&](std::size_t k, const lanes16(&block)[2]) HWY_ATTR {
                     for (std::size_t half = 0; half < 2 && k + 16 * half < end; ++half)
                       for (std::size_t p = 0; p < parts; ++p) {
                         const std::size_t c = k + 16 * half + p * width - begin;
                         store(block[half].part[p],
                               values + c / tile_channels * tile_channels * value_tile +
                                   e * tile_channels + c % tile_channels);
                       }
                   });
}

/// Value product of a group of channels [begin, end) over entries first .. first+count-1 of `rows`.
template <std::size_t Vectors, class Rows>
HWY_INLINE void add_group(const row_state& state, const channel_range& range, const Rows& rows,
                          std::size_t first, std::size_t count, std::size_t offset,
                          std::size_t begin, std::size_t end) {
  constexpr std::size_t tile_channels = Vectors * width;
  decode_values<Vectors>(rows, first, count, begin, end, range.values);
  for (std::size_t c = begin; c < end; c += tile_channels)
    add_value_tile<Vectors>(state, range.values + (c - begin) * value_tile, c, offset + first,
                            count);
}

/// Value product over one list of entries; the first is number `offset` of all.
template <class Rows>
HWY_INLINE void add_list(const row_state& state, const channel_range& range, const Rows& rows,
                         std::size_t entries, std::size_t offset) {
  for (std::size_t first = 0; first < entries; first += value_tile) {
    const std::size_t count = std::min(value_tile, entries - first);
    for (std::size_t c = range.begin; c < range.end; c += value_group) {
      const std::size_t end = std::min(c + value_group, range.end);
      if (end - c == value_group)
        add_group<value_vectors>(state, range, rows, first, count, offset, c, end);
      else
        add_group<parts>(state, range, rows, first, count, offset, c, end);
    }
  }
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
