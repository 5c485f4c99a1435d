// Fibers of a block and their meetings.
#pragma once

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <source_location>
#include <string>
#include <vector>

#include "kernels/cuda/device/launch_shape.hpp"
#include "kernels/cuda/emulation/block.hpp"
#include "kernels/cuda/emulation/shadow.hpp"

namespace cedar::kernels::cuda::emulation {

/// Memory for the stacks of a block's fibers, kept from block to block. Beyond a stack lies a page
/// that nobody may touch.
class stack_pool {
 public:
  stack_pool() = default;
  ~stack_pool();
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;

  boost::context::stack_context stack(std::size_t index);

 private:
  boost::context::protected_fixedsize_stack allocator_{stack_bytes};
  std::vector<boost::context::stack_context> stacks_;

  static constexpr std::size_t stack_bytes = std::size_t{64} << 10;
};

struct copy {
  shared_place array;
  std::size_t first, bytes;
  const void* from;
  std::size_t valid;
};

struct thread_state {
  enum class stage : std::uint8_t { ready, at_block_barrier, at_warp_operation, done };

  boost::context::fiber fiber;
  stage at = stage::ready;
  const char* meeting = "";  ///< name of what it waits at
  void* operands = nullptr;
  void (*operation)(lane_operands) = nullptr;
  std::source_location where;
  std::size_t shared_taken = 0;  ///< arrays
  std::vector<copy> open_copies;
  std::vector<std::vector<copy>> copy_groups;
};

class block_runner {
 public:
  /// Runs one block to its end.
  void run(const launch_shape& shape, grid_extent block, const std::function<void()>& body);

  thread_state& thread() { return threads_[current_]; }
  unsigned thread_number() const { return static_cast<unsigned>(current_); }
  shared_shadow::actor actor(unsigned thread) const;
  const launch_shape& shape() const { return *shape_; }
  grid_extent block() const { return block_; }
  shared_shadow& shadow() { return shadow_; }
  std::byte* shared_memory() { return shared_.data(); }
  std::vector<shared_place>& arrays() { return arrays_; }

  /// Stops the running thread until its meeting is over.
  void suspend(thread_state::stage at);

  /// The text of a fault of `thread`.
  std::string describe(unsigned thread, const std::string& what) const;

 private:
  void start_threads(const std::function<void()>& body);
  void run_threads();
  bool run_warp(std::size_t warp);
  void resume(std::size_t thread);
  bool lanes_met(std::size_t first) const;
  void carry_out(std::size_t first);
  bool block_met() const;
  [[noreturn]] void report_divergence() const;
  void finish_thread(std::size_t thread);

  const launch_shape* shape_ = nullptr;
  grid_extent block_;
  stack_pool stacks_;
  std::vector<thread_state> threads_;
  std::vector<std::uint32_t> warp_barriers_;
  boost::context::fiber scheduler_;
  std::size_t current_ = 0;
  std::size_t done_ = 0;
  std::exception_ptr failure_;
  std::vector<std::byte> shared_;
  shared_shadow shadow_;
  std::vector<shared_place> arrays_;
};

/// That of the calling thread of the system while it runs a grid. Throws a fault if it does not.
block_runner& runner();

}  // namespace cedar::kernels::cuda::emulation
