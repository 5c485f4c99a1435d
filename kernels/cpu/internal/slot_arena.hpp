// The threads of a device: the only file pair that knows oneTBB.
//
// An arena has a fixed number of slots. A thread that calls in takes one, threads of oneTBB's own
// take others while there is work; a caller that finds every slot taken waits, and a thread inside
// may do its work for it. So several callers share the slots and none waits for ever.
#pragma once

#include <cstdint>
#include <memory>

namespace cedar::kernels::cpu {

class thread_places;

class slot_arena {
 public:
  /// An arena of `slots` slots, but no more than threads may run in this process (the processors
  /// that it may use): the rest would stay empty. Null if that leaves one. No thread starts before
  /// the first call of on_slots.
  /// `places`, if any, outlives it and takes every thread that comes in.
  static std::unique_ptr<slot_arena> make(std::uint32_t slots,
                                          const thread_places* places = nullptr);
  ~slot_arena();
  slot_arena(const slot_arena&) = delete;
  slot_arena& operator=(const slot_arena&) = delete;

  std::uint32_t slots() const noexcept { return slots_; }

  /// Calls run(context) `calls` times, side by side as far as slots are free (all by one thread if
  /// need be), and returns when all have returned. Whatever the caller wrote is visible to them,
  /// what they wrote to the caller. The first exception of a run is thrown here, after all have
  /// ended. A run must not wait for another.
  void on_slots(std::size_t calls, void (*run)(void*), void* context) const;

 private:
  struct arena;
  slot_arena(std::uint32_t slots, const thread_places* places);
  std::uint32_t slots_;
  std::unique_ptr<arena> arena_;
};

}  // namespace cedar::kernels::cpu
