// What the emulation finds wrong with a kernel: a defect of the kernel, never of its input.
#pragma once

#include "kernels/base/check.hpp"

namespace cedar::kernels::cuda::emulation {

/// what() names the kernel, the block, the thread, and what it did to what.
class fault : public defect {
 public:
  using defect::defect;
};

}  // namespace cedar::kernels::cuda::emulation
