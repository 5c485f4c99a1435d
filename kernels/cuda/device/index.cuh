// Scores of one row against index keys (plan/index_scores.hpp has the cut): keys are the left
// operand, query heads the right one.
#pragma once

#include "kernels/cuda/device/attention_tiles.cuh"
#include "kernels/plan/index_scores.hpp"

namespace cedar::kernels::cuda {

inline constexpr unsigned index_threads = plan::index_warps * warp_threads;

struct index_problem {
  global_rows<bf16> scores;  ///< [1, G]
  global_rows<const std::uint8_t> query;  ///< [heads, entry]
  global_array<const bf16> weights;  ///< [heads]
  global_array<const std::byte* const> keys;  ///< runs of `keys_run`
  packed_format format;
  std::size_t keys_run, entry_bytes;
  unsigned heads_padded;
};

CEDAR_DEVICE void load_heads(const shared_tile& heads, const shared_array<float>& weights,
                             const index_problem& in) {
  const unsigned pieces = padded(in.format.width) / 8;
  for (unsigned i = thread_index(); i < in.heads_padded * pieces; i += index_threads) {
    const unsigned head = i / pieces, col = i % pieces * 8;
    if (head < in.query.rows)
      unpack_eight(in.format, in.query.at(head, 0, in.query.cols), col, heads, head);
    else
      clear_eight(heads, head, col);
  }
  for (unsigned head = thread_index(); head < in.heads_padded; head += index_threads)
    weights.store(head, head < in.weights.size ? widen(in.weights.load(head)) : 0.0F);
}

CEDAR_DEVICE void load_index_keys(const shared_tile& keys, const index_problem& in,
                                  std::size_t first) {
  const unsigned pieces = padded(in.format.width) / 8;
  for (unsigned i = thread_index(); i < plan::index_tile_keys * pieces; i += index_threads) {
    const unsigned row = i / pieces, col = i % pieces * 8;
    const std::size_t key = first + row;
    if (key >= in.scores.cols) {
      clear_eight(keys, row, col);
      continue;
    }
    const auto* run = reinterpret_cast<const std::uint8_t*>(in.keys.load(key / in.keys_run));
    unpack_eight(in.format, run + key % in.keys_run * in.entry_bytes, col, keys, row);
  }
}

/// What a head adds to the score of a key.
CEDAR_DEVICE float term(float product, float weight) {
  const float rounded = widen(round_bf16(product));
  return widen(round_bf16((rounded < 0 ? 0.0F : rounded) * weight));  // a NaN passes
}

/// Scores of this warp's 16 keys: sums[0] of key lane / 4, sums[1] of eight further, for all lanes.
CEDAR_DEVICE void score_keys(float (&sums)[2], const shared_tile& keys, const shared_tile& heads,
                             const shared_array<float>& weights, const index_problem& in) {
  for (unsigned first = 0; first < in.heads_padded; first += 8) {
    float products[4] = {};
    for (unsigned col = 0; col < in.format.width; col += 16) {
      std::uint32_t left[4], right[2];
      load_left(left, keys, warp_index() * plan::index_warp_keys, col);
      load_right(right, heads, first, col);
      multiply_bf16(products, left, right);
    }
    for (unsigned i = 0; i < 4; ++i)
      sums[i / 2] += term(products[i], weights.load(first + lane_index() % 4 * 2 + i % 2));
  }
  for (float& each : sums)
    for (unsigned mask = 1; mask < 4; mask *= 2) each += shuffle_xor(each, mask);
}

/// Grid: x over blocks, each of which takes every so many-th tile.
CEDAR_KERNEL(index_threads) void score_index(index_problem in) {
  dynamic_shared shared;
  const unsigned cols = padded(in.format.width);
  const shared_tile heads = take_tile(shared, in.heads_padded, cols, "heads");
  const shared_tile keys = take_tile(shared, plan::index_tile_keys, cols, "keys");
  const auto weights = shared.take<float>(in.heads_padded, "weights");
  load_heads(heads, weights, in);
  const std::size_t step = std::size_t{grid_size().x} * plan::index_tile_keys;
  for (std::size_t first = std::size_t{block_index().x} * plan::index_tile_keys;
       first < in.scores.cols; first += step) {
    load_index_keys(keys, in, first);
    sync_block();
    float sums[2] = {};
    score_keys(sums, keys, heads, weights, in);
    for (unsigned half = 0; half < 2; ++half) {
      const std::size_t key =
          first + warp_index() * plan::index_warp_keys + lane_index() / 4 + half * 8;
      if (lane_index() % 4 == 0 && key < in.scores.cols)
        in.scores.store(0, key, round_bf16(sums[half]));
    }
    sync_block();
  }
}

}  // namespace cedar::kernels::cuda
