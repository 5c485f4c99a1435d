// Functions that several kernels need.
#pragma once

#include "kernels/cuda/device/platform.cuh"

namespace cedar::kernels::cuda {

/// Of either sign, the exponential does not overflow.
CEDAR_DEVICE float sigmoid(float x) {
  const float small = exponential(x < 0 ? x : -x);
  return divide(x < 0 ? small : 1.0F, 1.0F + small);
}

}  // namespace cedar::kernels::cuda
