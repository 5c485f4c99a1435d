// How the scores of one row against many index keys are cut into blocks.
//
// A block holds the row's query heads in shared memory and walks tiles of keys; a key is scored by
// one block whatever their number, so that its bits do not depend on the grid.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/plan/device_limits.hpp"

namespace cedar::kernels::plan {

/// Keys that a warp scores at a time: the rows of a matrix fragment.
inline constexpr std::uint32_t index_warp_keys = 16;
inline constexpr std::uint32_t index_warps = 4;
/// Keys of a tile.
inline constexpr std::uint32_t index_tile_keys = index_warp_keys * index_warps;

struct index_problem {
  std::size_t keys = 0;
  std::size_t heads = 0;
  std::size_t head_dim = 0;  ///< a multiple of 32
};

struct index_plan {
  std::uint32_t threads = index_warps * 32;
  std::uint32_t heads_padded = 0;  ///< to whole fragments of 8
  std::uint32_t blocks = 0;
  std::uint32_t shared_bytes =
      0;  ///< query heads and a tile of keys as bf16, and the heads' weights
};

/// keys, heads > 0. Never exceeds `limits`. Defect: query heads that do not fit into shared memory.
index_plan plan_index_scores(const index_problem& problem, const device_limits& limits);

}  // namespace cedar::kernels::plan
