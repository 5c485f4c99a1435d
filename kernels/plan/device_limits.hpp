// What a CUDA device has, as far as it decides how a kernel is cut into blocks.
//
// Bytes and counts as the runtime reports them (cudaDeviceProp); a plan never exceeds one of them.
#pragma once

#include <cstdint>

namespace cedar::kernels::plan {

struct device_limits {
  std::uint32_t architecture = 0;  ///< 10 * major + minor of the compute capability
  std::uint32_t multiprocessors = 0;
  std::uint32_t threads_per_block = 0;
  std::uint32_t threads_per_multiprocessor = 0;
  std::uint32_t blocks_per_multiprocessor = 0;
  std::uint32_t registers_per_multiprocessor = 0;  ///< of 32 bits
  std::uint32_t shared_bytes_per_block = 0;  ///< that a block may opt into
  std::uint32_t shared_bytes_per_multiprocessor =
      0;  ///< blocks', and what the system takes of each

  friend bool operator==(const device_limits&, const device_limits&) = default;
};

/// Threads that run in step.
inline constexpr std::uint32_t warp_threads = 32;
/// Registers that a thread can name, on every architecture.
inline constexpr std::uint32_t registers_per_thread_max = 255;
/// What the system takes of a multiprocessor's shared memory for each block on it.
inline constexpr std::uint32_t system_shared_bytes_per_block = 1024;

/// NVIDIA H200 and B200 (CUDA C++ Programming Guide 13.0, technical specifications per compute
/// capability; numbers of multiprocessors: their data sheets). What plans are tested against where
/// there is no device.
inline constexpr device_limits h200{90, 132, 1024, 2048, 32, 65536, 232448, 233472};
inline constexpr device_limits b200{100, 148, 1024, 2048, 32, 65536, 232448, 233472};

}  // namespace cedar::kernels::plan
