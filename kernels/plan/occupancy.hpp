// How many blocks of a kernel are on a multiprocessor at a time.
#pragma once

#include <cstdint>

#include "kernels/plan/device_limits.hpp"

namespace cedar::kernels::plan {

/// What a block of a kernel takes.
struct block_needs {
  std::uint32_t threads = 0;
  std::uint32_t registers_per_thread = 0;
  std::uint32_t shared_bytes = 0;
};

/// 0: the device cannot launch such a block. Registers are given out to warps by 256 (CUDA C++
/// Programming Guide, technical specifications).
std::uint32_t blocks_resident(const block_needs& needs, const device_limits& limits);

}  // namespace cedar::kernels::plan
