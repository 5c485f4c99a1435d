// Attention of one query row after the other over packed entries; at the end, of every query over
// every key, by the same steps.
//
// 1. Scores: a product of the row's heads (as rows) with the entries (as weights), times the scale.
// 2. Per head: the maximum, then exponentials; the denominator is their canonical sum over the list
//    [window, selected] (entry e in lane e mod 16) plus the sink's exponential, added last.
// 3. Values: each channel of each head is one chain of fused multiply-adds over the entries in
// order. Entries are dequantised twice (for 1 and for 3), a tile at a time, never once per head.
#include "kernels/cpu/internal/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <limits>

#include "kernels/cpu/canonical_math.hpp"
#include "kernels/cpu/internal/math-inl.hpp"
#include "kernels/cpu/internal/product-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

inline constexpr float lowest_maximum = -1e30F;
/// Entries that are dequantised together for the value product: 32 x 16 channels fit the L1 cache.
inline constexpr std::size_t value_tile = 32;
/// Of an exponential (internal/workers.hpp).
inline constexpr std::size_t exp_cost = 8;
/// Heads that share the loads of an entry: heads * parts chains hide the latency.
inline constexpr std::size_t value_heads = width == 16 ? 8 : 4;

HWY_INLINE std::size_t round_up(std::size_t count, std::size_t unit) {
  return (count + unit - 1) / unit * unit;
}

/// Products to scores.
struct score_sink {
  matrix_sink<float> scores;
  float scale;

  HWY_INLINE void operator()(std::size_t row, std::size_t first, std::size_t count,
                             four_vector sums) const {
    scores(row, first, count, hn::Mul(sums, hn::Set(four_tag{}, scale)));
  }
};

/// Working memory of a row.
struct row_state {
  std::size_t heads = 0;
  std::size_t head_dim = 0;
  std::size_t entries = 0;
  std::size_t columns = 0;  ///< entries, rounded up to 16
  std::size_t channels = 0;  ///< head_dim, rounded up to 16
  float* scores = nullptr;  ///< [heads, columns], then probabilities
  float* denominators = nullptr;  ///< [heads]
  float* sums = nullptr;  ///< [heads, channels]
};

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

/// sums[Heads][16 channels] += probabilities x values over `count` entries in order.
template <std::size_t Heads>
HWY_INLINE void add_values(const float* values, std::size_t count, const float* probabilities,
                           std::size_t columns, float* sums, std::size_t channels) {
  f32_vector chains[Heads][parts];
  for (std::size_t h = 0; h < Heads; ++h)
    for (std::size_t p = 0; p < parts; ++p) chains[h][p] = load(sums + h * channels + p * width);
  for (std::size_t e = 0; e < count; ++e) {
    f32_vector value[parts];
    for (std::size_t p = 0; p < parts; ++p) value[p] = load(values + 16 * e + p * width);
    HWY_UNROLL(8)
    for (std::size_t h = 0; h < Heads; ++h) {
      const auto probability = set(probabilities[h * columns + e]);
      HWY_UNROLL(2)
      for (std::size_t p = 0; p < parts; ++p)
        chains[h][p] = hn::MulAdd(probability, value[p], chains[h][p]);
    }
  }
  for (std::size_t h = 0; h < Heads; ++h)
    for (std::size_t p = 0; p < parts; ++p) store(chains[h][p], sums + h * channels + p * width);
}

/// Channels [begin, end) of a row; both whole blocks of 16 but for the end of a head.
struct channel_range {
  std::size_t begin = 0;
  std::size_t end = 0;
  float* values = nullptr;  ///< [blocks of 16][value_tile][16], one tile of entries
};

/// Adds a dequantised tile, whose first entry is number `first` of the list, to all heads.
HWY_NOINLINE void add_value_tile(const row_state& state, const channel_range& range,
                                 std::size_t first, std::size_t count) {
  for (std::size_t c = range.begin; c < range.end; c += 16) {
    const float* values = range.values + (c - range.begin) * value_tile;
    std::size_t head = 0;
    const auto add = [&]<std::size_t Heads>() HWY_ATTR {
      add_values<Heads>(values, count, state.scores + head * state.columns + first, state.columns,
                        state.sums + head * state.channels + c, state.channels);
      head += Heads;
    };
    while (head + value_heads <= state.heads) add.template operator()<value_heads>();
    while (head + 4 <= state.heads) add.template operator()<4>();
    while (head < state.heads) add.template operator()<1>();
  }
}

/// Value product over one list of entries; the first is number `offset` of all.
template <class Rows>
HWY_INLINE void add_list(const row_state& state, const channel_range& range, const Rows& rows,
                         std::size_t entries, std::size_t offset) {
  for (std::size_t first = 0; first < entries; first += value_tile) {
    const std::size_t count = std::min(value_tile, entries - first);
    for (std::size_t e = 0; e < count; ++e)
      for_each_block(rows, rows.row(first + e), range.begin, range.end,
                     [&](std::size_t k, const lanes16(&values)[2]) HWY_ATTR {
                       const std::size_t block = (k - range.begin) / 16;
                       for (std::size_t half = 0; half < 2 && k + 16 * half < range.end; ++half)
                         for (std::size_t p = 0; p < parts; ++p)
                           store(values[half].part[p],
                                 range.values + ((block + half) * value_tile + e) * 16 + p * width);
                     });
    add_value_tile(state, range, offset + first, count);
  }
}

HWY_NOINLINE void attend(const attention_arguments& a, workers threads, std::size_t row) {
  const attention_entries& lists = a.entries[row];
  row_state state;
  state.heads = a.sinks.size();
  state.head_dim = a.head_dim;
  state.entries = lists.window.size() + lists.selected.size();
  bf16* o = a.o.row_data(row);
  if (state.entries == 0) {
    std::fill_n(o, state.heads * state.head_dim, bf16{});
    return;
  }
  scratch memory;
  state.columns = round_up(state.entries, 16);
  state.channels = round_up(state.head_dim, 16);
  state.scores = memory.take<float>(state.heads * state.columns);
  state.denominators = memory.take<float>(state.heads);
  state.sums = memory.take<float>(state.heads * state.channels);

  const plain_rows<bf16> q{matrix_view<const bf16>(a.q.row_data(row), state.heads, a.head_dim)};
  const matrix_view<float> scores(state.scores, state.heads, state.columns);
  const auto score = [&](const auto& rows, std::size_t count, std::size_t offset) HWY_ATTR {
    multiply(threads, q, state.heads, a.head_dim, rows, count, 1,
             score_sink{{scores.cols_from(offset, count)}, a.scale});
  };
  const auto for_each_list = [&](const auto& use) HWY_ATTR {
    with_entries(a.window_format, lists.window, a.head_dim, [&](const auto& rows) HWY_ATTR {
      use(rows, lists.window.size(), std::size_t{0});
    });
    with_entries(a.selected_format, lists.selected, a.head_dim, [&](const auto& rows) HWY_ATTR {
      use(rows, lists.selected.size(), lists.window.size());
    });
  };
  for_each_list(score);
  threads.split(state.heads, 1, exp_cost * state.columns,
                [&](std::size_t begin, std::size_t end) HWY_ATTR {
                  for (std::size_t head = begin; head < end; ++head)
                    state.denominators[head] = softmax(state.scores + head * state.columns,
                                                       state.entries, state.columns, a.sinks[head]);
                });
  std::fill_n(state.sums, state.heads * state.channels, 0.0F);
  threads.split(a.head_dim, block_size, output_cost(state.heads, state.entries),
                [&](std::size_t begin, std::size_t end) HWY_ATTR {
                  scratch inner;
                  const channel_range range{
                      begin, end, inner.take<float>(round_up(end - begin, 16) * value_tile)};
                  for_each_list([&](const auto& rows, std::size_t count, std::size_t offset)
                                    HWY_ATTR { add_list(state, range, rows, count, offset); });
                  for (std::size_t head = 0; head < state.heads; ++head)
                    for (std::size_t c = begin; c < end; c += width)
                      store_first(hn::Div(load(state.sums + head * state.channels + c),
                                          set(state.denominators[head])),
                                  o + head * a.head_dim + c, end - c);
                });
}

/// Rows are divided if there is one for each thread, else what a row consists of.
void attention_rows(const attention_arguments& a, workers threads) {
  const std::size_t rows = a.q.rows;
  if (rows < threads.threads()) {
    for (std::size_t row = 0; row < rows; ++row) attend(a, threads, row);
    return;
  }
  std::size_t entries = 0;
  for (const attention_entries& lists : a.entries)
    entries += lists.window.size() + lists.selected.size();
  const std::size_t cost = 2 * output_cost(a.sinks.size(), a.head_dim) * entries / rows;
  threads.split(rows, 1, cost, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    for (std::size_t row = begin; row < end; ++row) attend(a, workers{}, row);
  });
}

// ---- every query with every key ----------------------------------------------------------------

/// Queries whose scores are held together: whole register tiles of both products.
inline constexpr std::size_t query_tile = 48;

/// Queries [first, first + count) of a head: they stand where a row's heads do above.
HWY_NOINLINE void attend_fully(const full_attention_arguments& a, std::size_t head,
                               std::size_t first, std::size_t count) {
  const std::size_t column = head * a.head_dim;
  scratch memory;
  row_state state;
  state.heads = count;
  state.head_dim = a.head_dim;
  state.entries = a.k.rows;
  state.columns = round_up(state.entries, 16);
  state.channels = round_up(state.head_dim, 16);
  state.scores = memory.take<float>(count * state.columns);
  state.denominators = memory.take<float>(count);
  state.sums = memory.take<float>(count * state.channels);
  const plain_rows<bf16> q{a.q.rows_from(first, count).cols_from(column, a.head_dim)};
  const plain_rows<bf16> keys{a.k.cols_from(column, a.head_dim)};
  const plain_rows<bf16> values{a.v.cols_from(column, a.head_dim)};
  multiply(workers{}, q, count, a.head_dim, keys, state.entries, 1,
           score_sink{{{state.scores, count, state.entries, state.columns}}, a.scale});
  constexpr float no_sink = -std::numeric_limits<float>::infinity();
  for (std::size_t row = 0; row < count; ++row)
    state.denominators[row] =
        softmax(state.scores + row * state.columns, state.entries, state.columns, no_sink);
  std::fill_n(state.sums, count * state.channels, 0.0F);
  const channel_range range{0, a.head_dim, memory.take<float>(state.channels * value_tile)};
  add_list(state, range, values, state.entries, 0);
  for (std::size_t row = 0; row < count; ++row)
    for (std::size_t c = 0; c < a.head_dim; c += width)
      store_first(
          hn::Div(load(state.sums + row * state.channels + c), set(state.denominators[row])),
          a.o.row_data(first + row) + column + c, a.head_dim - c);
}

void full_attention_rows(const full_attention_arguments& a, workers threads) {
  const std::size_t tiles = (a.q.rows + query_tile - 1) / query_tile;
  const std::size_t cost = 2 * output_cost(query_tile, a.head_dim) * a.k.rows;
  threads.split(a.q.cols / a.head_dim * tiles, 1, cost,
                [&](std::size_t begin, std::size_t end) HWY_ATTR {
                  for (std::size_t unit = begin; unit < end; ++unit) {
                    const std::size_t first = unit % tiles * query_tile;
                    attend_fully(a, unit / tiles, first, std::min(query_tile, a.q.rows - first));
                  }
                });
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cedar::kernels::cpu {

HWY_EXPORT(attention_rows);
HWY_EXPORT(full_attention_rows);

void attention(const attention_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(attention_rows)(arguments, threads);
}

void full_attention(const full_attention_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(full_attention_rows)(arguments, threads);
}

}  // namespace cedar::kernels::cpu
#endif
