// What the module cedar-cuda.so offers to a program that opens it: one symbol.
//
// 1. Program and module are built together, by one compiler: C++ types cross the border. `version`
//    says so for a module that was left over.
// 2. This header and what it includes know nothing of CUDA: the program is the same on every
//    machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ops/backend.hpp"
#include "kernels/plan/device_limits.hpp"
#include "runtime/base/result.hpp"

namespace cedar::kernels::cuda {

/// A device as CUDA numbers it in this process (CUDA_VISIBLE_DEVICES hides and reorders).
struct device_description {
  std::uint32_t index = 0;
  std::string name;  ///< "NVIDIA H200"
  std::uint64_t memory_bytes = 0;
  plan::device_limits limits;
  /// It reaches all memory of the process by the host's addresses (pageable memory access: HMM of
  /// the open kernel modules, or a coherent link).
  bool reaches_host_memory = false;
};

/// The oldest architecture that the module has code for (tools/cmake/CedarCuda.cmake).
inline constexpr std::uint32_t least_architecture = 90;

struct plugin {
  std::uint32_t version = 0;  ///< plugin_version of the module
  /// All devices, by index; never none. Errors: not_found: no driver, or no device; mismatch: a
  /// driver that is too old; io: whatever else CUDA says. The text says what to do.
  result<std::vector<device_description>> (*devices)() = nullptr;
  /// A backend on a device of `devices` that is of `least_architecture` or later and reaches the
  /// host's memory. Its calls return when their results are there. Errors: capacity, io.
  result<std::unique_ptr<backend>> (*make_backend)(const device_description& device) = nullptr;
};

/// Raised whenever this header changes.
inline constexpr std::uint32_t plugin_version = 3;
inline constexpr const char* plugin_file = "cedar-cuda.so";
/// Of type plugin_function, C linkage.
inline constexpr const char* plugin_symbol = "cedar_cuda_plugin";
using plugin_function = const plugin* (*)();

}  // namespace cedar::kernels::cuda
