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

#include "kernels/cpu/internal/attention-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

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
  take_queries(memory, state, q);
  const auto for_each_list = [&](const auto& use) HWY_ATTR {
    with_entries(a.window_format, lists.window, a.head_dim, [&](const auto& rows) HWY_ATTR {
      use(rows, lists.window.size(), std::size_t{0});
    });
    with_entries(a.selected_format, lists.selected, a.head_dim, [&](const auto& rows) HWY_ATTR {
      use(rows, lists.selected.size(), lists.window.size());
    });
  };
  for_each_list([&](const auto& rows, std::size_t count, std::size_t offset)
                    HWY_ATTR { score_list(threads, state, q, rows, count, offset, a.scale); });
  threads.split(state.heads, 1, exp_cost * state.columns,
                [&](std::size_t begin, std::size_t end) HWY_ATTR {
                  for (std::size_t head = begin; head < end; ++head)
                    state.denominators[head] = softmax(state.scores + head * state.columns,
                                                       state.entries, state.columns, a.sinks[head]);
                });
  std::fill_n(state.sums, state.heads * state.channels, 0.0F);
  threads.split(
      a.head_dim, value_group, output_cost(state.heads, state.entries),
      [&](std::size_t begin, std::size_t end) HWY_ATTR {
        scratch inner;
        const channel_range range{begin, end, inner.take<float>(value_group * value_tile)};
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
  take_queries(memory, state, q);
  score_list(workers{}, state, q, keys, state.entries, 0, a.scale);
  constexpr float no_sink = -std::numeric_limits<float>::infinity();
  for (std::size_t row = 0; row < count; ++row)
    state.denominators[row] =
        softmax(state.scores + row * state.columns, state.entries, state.columns, no_sink);
  std::fill_n(state.sums, count * state.channels, 0.0F);
  const channel_range range{0, a.head_dim, memory.take<float>(value_group * value_tile)};
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
