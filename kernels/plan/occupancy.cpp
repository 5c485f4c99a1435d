#include "kernels/plan/occupancy.hpp"

#include <algorithm>

#include "kernels/plan/rounding.hpp"

namespace cedar::kernels::plan {

namespace {

constexpr std::uint32_t register_unit = 256;

}  // namespace

std::uint32_t blocks_resident(const block_needs& needs, const device_limits& limits) {
  if (needs.threads == 0 || needs.threads > limits.threads_per_block ||
      needs.shared_bytes > limits.shared_bytes_per_block ||
      needs.registers_per_thread > registers_per_thread_max)
    return 0;
  const std::uint32_t warps = quotient_up(needs.threads, warp_threads);
  const std::uint32_t of_warp = round_up(needs.registers_per_thread * warp_threads, register_unit);
  std::uint32_t blocks = std::min(limits.blocks_per_multiprocessor,
                                  limits.threads_per_multiprocessor / (warps * warp_threads));
  if (of_warp > 0)
    blocks = std::min(blocks, limits.registers_per_multiprocessor / (of_warp * warps));
  return std::min(blocks, limits.shared_bytes_per_multiprocessor /
                              (needs.shared_bytes + system_shared_bytes_per_block));
}

}  // namespace cedar::kernels::plan
