// How attention is cut into blocks.
//
// A block has some tiles of 16 query rows that see the same keys: heads of one row, where packed
// entries are keys and values of all heads (sparse attention); rows of one head, in the vision
// tower (full attention). It walks the keys twice, a tile of them in shared memory at a time: once
// for the largest score of each query row, once for probabilities and sums. No block needs
// another's result, and the cut changes no bit of it (device/attention_tiles.cuh).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/plan/device_limits.hpp"

namespace cedar::kernels::plan {

/// Query rows of a tile: the rows of a matrix fragment.
inline constexpr std::uint32_t attention_tile = 16;
/// Warps that share a tile.
inline constexpr std::uint32_t attention_warps = 4;
inline constexpr std::uint32_t attention_tiles_max = 4;
/// Widest head: what a warp's accumulators hold, 16 fragments of 8 columns.
inline constexpr std::uint32_t attention_head_dim_max = 512;
/// What the kernels may use at their largest block (their launch bounds).
inline constexpr std::uint32_t attention_registers = 128;

struct attention_problem {
  std::size_t groups = 0;  ///< of query rows that see the same keys: rows, or heads
  std::size_t queries = 0;  ///< of a group: heads, or rows
  std::size_t head_dim = 0;  ///< at most attention_head_dim_max
  bool own_values = false;  ///< values are not the keys
};

struct attention_plan {
  std::uint32_t tiles = 1;  ///< of query rows, in a block: 1, 2 or 4
  std::uint32_t tile_keys = 0;  ///< in shared memory at a time: 64, 32 or 16
  std::uint32_t threads = 0;
  std::uint32_t blocks = 0;  ///< of a group
  std::uint32_t shared_bytes = 0;
};

/// Fragment g of eight keys is warp g % attention_warps's: the first of those from key `first` on,
/// a multiple of 8, that are warp `warp`'s, counted from there. So tiles of any size share keys
/// alike.
constexpr std::uint32_t attention_fragment(std::uint32_t warp, std::uint32_t first) {
  return (warp + attention_warps - first / 8 % attention_warps) % attention_warps;
}

/// Elements between rows of `cols` bf16 in shared memory: whole fragments, and 16 bytes more, so
/// that the eight rows of a fragment lie in different banks.
constexpr std::size_t attention_stride(std::size_t cols) {
  return (cols + 15) / 16 * 16 + 8;
}

/// Bytes of a row of `cols` bf16 in shared memory.
constexpr std::size_t attention_row_bytes(std::size_t cols) {
  return attention_stride(cols) * 2;
}

/// Shared memory of a block: queries, keys, values if they are others, probabilities, and what
/// warps tell each other.
std::size_t attention_shared_bytes(const attention_problem& problem, std::uint32_t tiles,
                                   std::uint32_t tile_keys);

/// groups, queries > 0. As many query rows in a block as still fill the device, because they share
/// the work of bringing keys; as many keys at a time as fit. Never exceeds `limits`. Defect: a head
/// that is too wide, or a device with less shared memory than any that is supported.
attention_plan plan_attention(const attention_problem& problem, const device_limits& limits);

}  // namespace cedar::kernels::plan
