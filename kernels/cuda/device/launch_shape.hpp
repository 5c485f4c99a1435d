// What a kernel is started with, apart from its arguments.
#pragma once

#include <cstddef>

namespace cedar::kernels::cuda {

/// Threads that run in step; blocks are multiples of it.
inline constexpr unsigned warp_threads = 32;
/// Alignment of every shared array: a row of a matrix fragment, a 16-byte copy.
inline constexpr std::size_t shared_alignment = 16;

/// A place in the grid, or its size.
struct grid_extent {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

struct launch_shape {
  const char* kernel = "";  ///< for messages; static storage
  grid_extent grid;  ///< blocks; none: nothing to do
  unsigned threads = 0;  ///< of a block: a multiple of warp_threads, at most 1024
  std::size_t shared_bytes = 0;  ///< of a block: the sum of shared_bytes_of its arrays
};

/// Bytes of the block's shared memory that an array of `count` elements of T takes.
template <class T>
constexpr std::size_t shared_bytes_of(std::size_t count) {
  return (count * sizeof(T) + shared_alignment - 1) / shared_alignment * shared_alignment;
}

}  // namespace cedar::kernels::cuda
