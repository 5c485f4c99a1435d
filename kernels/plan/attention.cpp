#include "kernels/plan/attention.hpp"

#include <string>

#include "kernels/base/check.hpp"
#include "kernels/plan/rounding.hpp"

namespace cedar::kernels::plan {

namespace {

bool fits(const attention_problem& problem, std::uint32_t tiles, std::uint32_t tile_keys,
          const device_limits& limits) {
  return attention_shared_bytes(problem, tiles, tile_keys) <= limits.shared_bytes_per_block;
}

/// The most tiles whose blocks still occupy every multiprocessor.
std::uint32_t tiles_of(const attention_problem& problem, const device_limits& limits) {
  const std::size_t tiles = quotient_up<std::size_t>(problem.queries, attention_tile);
  for (std::uint32_t each = attention_tiles_max; each > 1; each /= 2) {
    const std::size_t blocks = problem.groups * quotient_up<std::size_t>(tiles, each);
    if (tiles >= each && blocks >= limits.multiprocessors &&
        fits(problem, each, attention_tile, limits))
      return each;
  }
  return 1;
}

}  // namespace

std::size_t attention_shared_bytes(const attention_problem& problem, std::uint32_t tiles,
                                   std::uint32_t tile_keys) {
  const std::size_t queries = std::size_t{tiles} * attention_tile;
  const std::size_t keys = std::size_t{tile_keys} * (problem.own_values ? 2 : 1);
  return (queries + keys) * attention_row_bytes(problem.head_dim) +
         queries * attention_row_bytes(tile_keys) + queries * attention_warps * sizeof(float);
}

attention_plan plan_attention(const attention_problem& problem, const device_limits& limits) {
  CEDAR_REQUIRE(problem.head_dim <= attention_head_dim_max,
                "heads of " + std::to_string(problem.head_dim) + " are too wide for a block");
  attention_plan out;
  out.tiles = tiles_of(problem, limits);
  out.threads = out.tiles * attention_warps * warp_threads;
  out.blocks = static_cast<std::uint32_t>(
      quotient_up<std::size_t>(problem.queries, std::size_t{out.tiles} * attention_tile));
  out.tile_keys = 64;
  while (out.tile_keys > 16 && !fits(problem, out.tiles, out.tile_keys, limits)) out.tile_keys /= 2;
  CEDAR_REQUIRE(fits(problem, out.tiles, out.tile_keys, limits),
                "the device has too little shared memory for attention");
  out.shared_bytes =
      static_cast<std::uint32_t>(attention_shared_bytes(problem, out.tiles, out.tile_keys));
  return out;
}

}  // namespace cedar::kernels::plan
