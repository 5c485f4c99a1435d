// Attention of a tile of 16 query rows against tiles of keys (plan/attention.hpp has the cut): what
// the sparse and the full kind have in common.
//
// The keys are walked twice. First: the largest score of each query row. Second: scores again,
// their probabilities relative to that maximum, which are rounded to bf16 and mixed with the
// values. Key fragment g of eight is scored by warp g % 4 of the tile's four, whatever the size of
// tiles, and columns of the result are shared out likewise: the cut changes no bit.
//
// A kind of attention is a problem: `scale`, `head_dim`, `tile_keys`, and load_keys(problem, block,
// first), which brings keys and values to shared memory, with zeros beyond the last.
#pragma once

#include "kernels/cuda/device/tiles.cuh"
#include "kernels/plan/attention.hpp"

namespace cedar::kernels::cuda {

inline constexpr unsigned attention_threads_max =
    plan::attention_tiles_max * plan::attention_warps * warp_threads;
/// Fragments of the result that a warp holds.
inline constexpr unsigned attention_fragments =
    plan::attention_head_dim_max / 8 / plan::attention_warps;

/// What a thread works with.
struct attention_block {
  shared_tile queries;  ///< [16 * tiles, head_dim]
  shared_tile keys;  ///< [tile_keys, head_dim]
  shared_tile values;  ///< [tile_keys, head_dim]; may be the keys
  shared_tile probabilities;  ///< [16 * tiles, tile_keys]
  shared_array<float> told;  ///< [16 * tiles, 4]: what the warps of a tile tell each other
  unsigned tile, warp;  ///< of this thread: its tile of query rows, which of the tile's warps
  unsigned count;  ///< keys

  /// Query rows of the block that this lane has results of: this and eight more.
  CEDAR_DEVICE unsigned own_row() const { return tile * plan::attention_tile + lane_index() / 4; }
};

CEDAR_DEVICE shared_tile take_tile(dynamic_shared& shared, unsigned rows, unsigned cols,
                                   const char* name) {
  const auto stride = static_cast<unsigned>(plan::attention_stride(cols));
  return {shared.take<bf16>(std::size_t{rows} * stride, name), stride};
}

/// Columns of a tile in shared memory: whole fragments, zeros beyond the head.
CEDAR_DEVICE unsigned padded(unsigned head_dim) {
  return (head_dim + 15) / 16 * 16;
}

/// Scores of this warp's query rows with keys [8 * fragment, + 8) of the tile in memory.
template <class Problem>
CEDAR_DEVICE void score(float (&scores)[4], const Problem& in, const attention_block& block,
                        unsigned fragment) {
  for (float& each : scores) each = 0;
  for (unsigned col = 0; col < in.head_dim; col += 16) {
    std::uint32_t left[4], right[2];
    load_left(left, block.queries, block.tile * plan::attention_tile, col);
    load_right(right, block.keys, fragment * 8, col);
    multiply_bf16(scores, left, right);
  }
  for (float& each : scores) each *= in.scale;
}

struct take_larger {
  CEDAR_DEVICE float operator()(float a, float b) const { return b > a ? b : a; }
};
struct take_sum {
  CEDAR_DEVICE float operator()(float a, float b) const { return a + b; }
};

/// Combines what the lanes of a row, then the warps of a tile found; the same for all of them.
template <class Combine>
CEDAR_DEVICE void agree(float (&own)[2], const attention_block& block, const Combine& combine) {
  for (unsigned half = 0; half < 2; ++half) {
    for (unsigned mask = 1; mask < 4; mask *= 2)
      own[half] = combine(own[half], shuffle_xor(own[half], mask));
    if (lane_index() % 4 == 0)
      block.told.store((block.own_row() + 8 * half) * plan::attention_warps + block.warp,
                       own[half]);
  }
  sync_block();
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned first = (block.own_row() + 8 * half) * plan::attention_warps;
    own[half] = block.told.load(first);
    for (unsigned warp = 1; warp < plan::attention_warps; ++warp)
      own[half] = combine(own[half], block.told.load(first + warp));
  }
  sync_block();
}

/// The largest score of this lane's two query rows, never below -1e30. A NaN is passed over: it
/// comes back as a probability.
template <class Problem>
CEDAR_DEVICE void find_largest(float (&largest)[2], const Problem& in,
                               const attention_block& block) {
  for (float& each : largest) each = -1e30F;
  for (unsigned first = 0; first < block.count; first += in.tile_keys) {
    load_keys(in, block, first);
    sync_block();
    for (unsigned f = plan::attention_fragment(block.warp, first); f < in.tile_keys / 8;
         f += plan::attention_warps) {
      float scores[4];
      score(scores, in, block, f);
      for (unsigned i = 0; i < 4; ++i) {
        const bool valid = first + f * 8 + lane_index() % 4 * 2 + i % 2 < block.count;
        if (valid && scores[i] > largest[i / 2]) largest[i / 2] = scores[i];
      }
    }
    sync_block();
  }
  agree(largest, block, take_larger{});
}

/// Probabilities of the tile in memory to shared memory, rounded; unrounded, onto `sums`.
template <class Problem>
CEDAR_DEVICE void find_probabilities(float (&sums)[2], const float (&largest)[2], const Problem& in,
                                     const attention_block& block, unsigned first) {
  for (unsigned f = plan::attention_fragment(block.warp, first); f < in.tile_keys / 8;
       f += plan::attention_warps) {
    float scores[4];
    score(scores, in, block, f);
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned col = f * 8 + lane_index() % 4 * 2 + i % 2;
      const float each = first + col < block.count ? exponential(scores[i] - largest[i / 2]) : 0.0F;
      sums[i / 2] += each;
      block.probabilities.store(block.own_row() + i / 2 * 8, col, round_bf16(each));
    }
  }
}

/// Adds probabilities times values of the tile in memory to this warp's part of the result.
template <class Problem>
CEDAR_DEVICE void mix(float (&sums)[attention_fragments][4], const Problem& in,
                      const attention_block& block) {
  for (unsigned row = 0; row < in.tile_keys; row += 16) {
    std::uint32_t left[4];
    load_left(left, block.probabilities, block.tile * plan::attention_tile, row);
    CEDAR_UNROLL for (unsigned i = 0; i < attention_fragments; ++i) {
      const unsigned col = (block.warp + i * plan::attention_warps) * 8;
      if (col >= in.head_dim) continue;
      std::uint32_t right[2];
      load_right_standing(right, block.values, row, col);
      multiply_bf16(sums[i], left, right);
    }
  }
}

/// Result of the block's query rows: sums[i][j] is column own_column(i, j) of own_row() + j / 2
/// * 8.
struct attention_result {
  float sums[attention_fragments][4];
  float denominators[2];
  float largest[2];

  CEDAR_DEVICE static unsigned own_column(const attention_block& block, unsigned i, unsigned j) {
    return (block.warp + i * plan::attention_warps) * 8 + lane_index() % 4 * 2 + j % 2;
  }
};

/// Queries are in shared memory, and a barrier has passed.
template <class Problem>
CEDAR_DEVICE void attend_tiles(attention_result& out, const Problem& in,
                               const attention_block& block) {
  find_largest(out.largest, in, block);
  CEDAR_UNROLL for (unsigned i = 0; i < attention_fragments * 4; ++i) out.sums[i / 4][i % 4] = 0;
  out.denominators[0] = out.denominators[1] = 0;
  for (unsigned first = 0; first < block.count; first += in.tile_keys) {
    load_keys(in, block, first);
    sync_block();
    find_probabilities(out.denominators, out.largest, in, block, first);
    sync_block();
    mix(out.sums, in, block);
    sync_block();
  }
  agree(out.denominators, block, take_sum{});
}

}  // namespace cedar::kernels::cuda
