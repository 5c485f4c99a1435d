// The sum over a block, in an order that its size alone decides.
#pragma once

#include "kernels/cuda/device/platform.cuh"

namespace cedar::kernels::cuda {

/// Part of the arithmetic: which thread adds which products.
inline constexpr unsigned sum_threads = 128;
inline constexpr unsigned sum_warps = sum_threads / warp_threads;
inline constexpr std::size_t sum_shared_bytes = shared_bytes_of<float>(sum_warps);

/// For all threads: lanes by halving, then warps in order. `sums` [sum_warps] may be used again
/// when another barrier has passed.
CEDAR_DEVICE float sum_block(const shared_array<float>& sums, float own) {
  for (unsigned mask = warp_threads / 2; mask > 0; mask /= 2) own += shuffle_xor(own, mask);
  if (lane_index() == 0) sums.store(warp_index(), own);
  sync_block();
  float total = 0;
  for (unsigned warp = 0; warp < sum_warps; ++warp) total += sums.load(warp);
  return total;
}

}  // namespace cedar::kernels::cuda
