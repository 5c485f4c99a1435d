// Attention of every query row to every key of its head (the vision tower).
#pragma once

#include "kernels/cuda/device/attention_tiles.cuh"

namespace cedar::kernels::cuda {

struct full_problem {
  global_rows<bf16> o;  ///< [n, heads*hd]
  global_rows<const bf16> q;  ///< [n, heads*hd]
  global_rows<const bf16> k, v;  ///< [m, heads*hd]
  unsigned head_dim;
  float scale;
  unsigned tiles, tile_keys;
};

/// Rows [first, first + count) of the head that the block has, zeros beyond the last row and
/// column.
CEDAR_DEVICE void load_rows_of_head(const shared_tile& to, const global_rows<const bf16>& from,
                                    std::size_t first, unsigned count, unsigned head_dim) {
  const unsigned cols = padded(head_dim);
  for (unsigned i = thread_index(); i < count * cols; i += block_threads()) {
    const unsigned row = i / cols, col = i % cols;
    const bool valid = first + row < from.rows && col < head_dim;
    to.store(
        row, col,
        valid ? from.load(first + row, std::size_t{block_index().y} * head_dim + col) : bf16{});
  }
}

CEDAR_DEVICE void load_keys(const full_problem& in, const attention_block& block, unsigned first) {
  load_rows_of_head(block.keys, in.k, first, in.tile_keys, in.head_dim);
  load_rows_of_head(block.values, in.v, first, in.tile_keys, in.head_dim);
}

/// Grid: x over the blocks of query rows, y over the heads.
CEDAR_KERNEL(attention_threads_max) void attend_all(full_problem in) {
  dynamic_shared shared;
  const unsigned rows = in.tiles * plan::attention_tile, cols = padded(in.head_dim);
  const shared_tile queries = take_tile(shared, rows, cols, "queries");
  const shared_tile keys = take_tile(shared, in.tile_keys, cols, "keys");
  const shared_tile values = take_tile(shared, in.tile_keys, cols, "values");
  const shared_tile probabilities = take_tile(shared, rows, in.tile_keys, "probabilities");
  const attention_block block{queries,
                              keys,
                              values,
                              probabilities,
                              shared.take<float>(std::size_t{rows} * plan::attention_warps, "told"),
                              warp_index() / plan::attention_warps,
                              warp_index() % plan::attention_warps,
                              static_cast<unsigned>(in.k.rows)};
  const std::size_t first = std::size_t{block_index().x} * rows;
  load_rows_of_head(queries, in.q, first, rows, in.head_dim);
  sync_block();
  attention_result result;
  attend_tiles(result, in, block);
  CEDAR_UNROLL for (unsigned j = 0; j < 4; ++j) {
    const std::size_t row = first + block.own_row() + j / 2 * 8;
    if (row >= in.q.rows) continue;
    CEDAR_UNROLL for (unsigned i = 0; i < attention_fragments; ++i) {
      const unsigned col = attention_result::own_column(block, i, j);
      if (col >= in.head_dim) continue;
      in.o.store(row, std::size_t{block_index().y} * in.head_dim + col,
                 round_bf16(divide(result.sums[i][j], result.denominators[j / 2])));
    }
  }
}

}  // namespace cedar::kernels::cuda
