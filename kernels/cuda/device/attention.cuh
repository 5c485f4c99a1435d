// Attention over packed entries: the 16 query rows of a tile are heads of one row, and entries are
// keys and values at once, the same for all heads.
#pragma once

#include "kernels/cuda/device/attention_tiles.cuh"
#include "kernels/ops/arguments.hpp"

namespace cedar::kernels::cuda {

struct sparse_problem {
  global_rows<bf16> o;  ///< [n, H*hd]
  global_rows<const bf16> q;  ///< [n, H*hd]
  global_array<const attention_entries> entries;  ///< [n]
  global_array<const float> sinks;  ///< [H]
  unsigned head_dim;
  float scale;
  packed_format window, selected;
  unsigned tiles, tile_keys;
};

/// Entries [first, first + tile_keys) of the block's row.
CEDAR_DEVICE void load_keys(const sparse_problem& in, const attention_block& block,
                            unsigned first) {
  const attention_entries& list = in.entries.data[block_index().x];
  const auto windows = static_cast<unsigned>(list.window.size());
  const unsigned pieces = padded(in.head_dim) / 8;
  for (unsigned i = thread_index(); i < in.tile_keys * pieces; i += block_threads()) {
    const unsigned row = i / pieces, col = i % pieces * 8, index = first + row;
    if (index >= block.count) {
      clear_eight(block.keys, row, col);
      continue;
    }
    const bool of_window = index < windows;
    const std::byte* entry =
        of_window ? list.window.data()[index] : list.selected.data()[index - windows];
    unpack_eight(of_window ? in.window : in.selected, reinterpret_cast<const std::uint8_t*>(entry),
                 col, block.keys, row);
  }
}

/// Heads [first, first + 16 * tiles) of the block's row, zeros beyond the last.
CEDAR_DEVICE void load_queries(const sparse_problem& in, const attention_block& block,
                               unsigned first) {
  const unsigned cols = padded(in.head_dim);
  for (unsigned i = thread_index(); i < in.tiles * plan::attention_tile * cols;
       i += block_threads()) {
    const unsigned row = i / cols, col = i % cols, head = first + row;
    const bool valid = head < in.sinks.size && col < in.head_dim;
    block.queries.store(
        row, col,
        valid ? in.q.load(block_index().x, std::size_t{head} * in.head_dim + col) : bf16{});
  }
}

CEDAR_DEVICE void store_heads(const attention_result& result, const sparse_problem& in,
                              const attention_block& block, unsigned first) {
  CEDAR_UNROLL for (unsigned j = 0; j < 4; ++j) {
    const unsigned half = j / 2, head = first + block.own_row() + half * 8;
    if (head >= in.sinks.size) continue;
    const float denominator =
        result.denominators[half] + exponential(in.sinks.load(head) - result.largest[half]);
    CEDAR_UNROLL for (unsigned i = 0; i < attention_fragments; ++i) {
      const unsigned col = attention_result::own_column(block, i, j);
      if (col >= in.head_dim) continue;
      const float value = block.count == 0 ? 0.0F : divide(result.sums[i][j], denominator);
      in.o.store(block_index().x, std::size_t{head} * in.head_dim + col, round_bf16(value));
    }
  }
}

/// Grid: x over the rows, y over the blocks of heads.
CEDAR_KERNEL(attention_threads_max) void attend_entries(sparse_problem in) {
  dynamic_shared shared;
  const unsigned heads = in.tiles * plan::attention_tile, cols = padded(in.head_dim);
  const shared_tile queries = take_tile(shared, heads, cols, "queries");
  const shared_tile entries = take_tile(shared, in.tile_keys, cols, "entries");
  const shared_tile probabilities = take_tile(shared, heads, in.tile_keys, "probabilities");
  const attention_entries& list = in.entries.data[block_index().x];
  const attention_block block{
      queries,
      entries,
      entries,
      probabilities,
      shared.take<float>(std::size_t{heads} * plan::attention_warps, "told"),
      warp_index() / plan::attention_warps,
      warp_index() % plan::attention_warps,
      static_cast<unsigned>(list.window.size() + list.selected.size())};
  const unsigned first_head = block_index().y * heads;
  load_queries(in, block, first_head);
  sync_block();
  attention_result result;
  attend_tiles(result, in, block);
  store_heads(result, in, block, first_head);
}

}  // namespace cedar::kernels::cuda
