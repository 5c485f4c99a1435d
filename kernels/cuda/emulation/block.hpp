// One block at a time of a grid, on the calling thread: a fiber for each of its threads.
//
// 1. A thread runs until it meets others: at a barrier, or at an operation of its warp. Warps take
//    turns, lanes run in ascending order; nothing depends on that but the order of atomics.
// 2. An operation of a warp is carried out once all 32 lanes have brought their operands to it.
//    Lanes that are elsewhere, at another operation or another place in the source, are a fault.
// 3. The first fault ends the grid: the other fibers are unwound and run_grid throws.
// 4. The state belongs to the calling thread of the system; several of them may run grids at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <span>
#include <string>

#include "kernels/cuda/device/launch_shape.hpp"

namespace cedar::kernels::cuda::emulation {

/// Runs `body` once for every thread of every block. Throws fault, or what `body` throws.
void run_grid(const launch_shape& shape, const std::function<void()>& body);

/// Grids of at least one block that the calling thread has run so far.
std::uint64_t grids_run() noexcept;

/// What the functions of platform.hpp ask about the running thread. All of them may only be called
/// from within run_grid's body, and throw a fault otherwise.
unsigned current_thread();
grid_extent current_block();
const launch_shape& current_launch();

/// A defect of the running thread: throws a fault that says where it is.
[[noreturn]] void fail(const std::string& what);

void meet_block(std::source_location where);
void meet_warp(std::source_location where);

/// Operands and results of the 32 lanes of a warp, in the form that an operation agrees on with
/// itself.
using lane_operands = std::span<void* const, warp_threads>;

/// Leaves `operands` for `operation` and returns when it has run on those of all lanes. `name` is
/// that of the operation, for messages.
void meet_lanes(const char* name, void* operands, void (*operation)(lane_operands),
                std::source_location where);

// ---- shared memory --------------------------------------------------------------------------

/// An array of the block, by its place in the order in which every thread takes them.
struct shared_place {
  const char* name = "";
  std::size_t offset = 0;  ///< of its first byte in the block's shared memory
  std::size_t count = 0;
  std::size_t element_bytes = 1;  ///< for messages
};

/// The next array of the running thread. A fault: it differs from what another thread took in its
/// place, or exceeds the launch's shared_bytes.
shared_place take_shared(const char* name, std::size_t count, std::size_t element_bytes);

/// Reads or writes `bytes` bytes at `first` bytes from the beginning of the array, as `thread` does
/// it.
void read_shared(const shared_place& array, std::size_t first, std::size_t bytes, void* to,
                 unsigned thread);
void write_shared(const shared_place& array, std::size_t first, std::size_t bytes, const void* from,
                  unsigned thread);

/// Starts a copy of the running thread; `from` has `valid` bytes, zeros follow.
void start_copy(const shared_place& array, std::size_t first, std::size_t bytes, const void* from,
                std::size_t valid);
/// Closes the group of copies started since the last one.
void commit_copies();
/// Carries out all groups of the running thread but the last `left`.
void wait_copies(std::size_t left);

}  // namespace cedar::kernels::cuda::emulation
