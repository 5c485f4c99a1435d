#include "kernels/plan/index_scores.hpp"

#include <algorithm>
#include <string>

#include "kernels/base/check.hpp"
#include "kernels/plan/attention.hpp"
#include "kernels/plan/occupancy.hpp"
#include "kernels/plan/rounding.hpp"

namespace cedar::kernels::plan {

namespace {

constexpr std::size_t fragment_columns = 8;
/// What the kernel is compiled to at most (its launch bounds).
constexpr std::uint32_t registers_per_thread = 128;

}  // namespace

index_plan plan_index_scores(const index_problem& problem, const device_limits& limits) {
  index_plan out;
  out.heads_padded = static_cast<std::uint32_t>(round_up(problem.heads, fragment_columns));
  const std::size_t rows = out.heads_padded + std::size_t{index_tile_keys};
  const std::size_t bytes =
      rows * attention_row_bytes(problem.head_dim) + out.heads_padded * sizeof(float);
  CEDAR_REQUIRE(bytes <= limits.shared_bytes_per_block,
                "query heads of " + std::to_string(bytes) + " bytes do not fit into a block");
  out.shared_bytes = static_cast<std::uint32_t>(bytes);
  const std::uint32_t resident =
      blocks_resident({out.threads, registers_per_thread, out.shared_bytes}, limits);
  const std::size_t tiles = quotient_up<std::size_t>(problem.keys, index_tile_keys);
  out.blocks = static_cast<std::uint32_t>(
      std::min<std::size_t>(tiles, std::size_t{limits.multiprocessors} * std::max(1U, resident)));
  return out;
}

}  // namespace cedar::kernels::plan
