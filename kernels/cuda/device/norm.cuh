// RMS norm and nothing else.
#pragma once

#include "kernels/cuda/device/norm_row.cuh"

namespace cedar::kernels::cuda {

/// Grid: x over the rows.
CEDAR_KERNEL(sum_threads) void normalise(norm_problem in) {
  dynamic_shared shared;
  normalise_row(shared.take<float>(sum_warps, "sums"), in, block_index().x);
}

}  // namespace cedar::kernels::cuda
