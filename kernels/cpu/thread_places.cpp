#include "kernels/cpu/internal/thread_places.hpp"

#include <atomic>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace cedar::kernels::cpu {

namespace {

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

/// What oneTBB promises, which is not built with the thread sanitizer: its threads see what made
/// the places, and have left when these end.
void published([[maybe_unused]] const thread_places* places) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(const_cast<thread_places*>(places));
#endif
}
void received([[maybe_unused]] const thread_places* places) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(const_cast<thread_places*>(places));
#endif
}

}  // namespace

thread_places::thread_places(const thread_placement& placement)
    : placement_(placement), id_(placement == thread_placement{} ? 0 : next_id()) {
  published(this);
}

thread_places::~thread_places() {
  received(this);
}

void thread_places::take_this_thread() const noexcept {
  thread_local std::uint64_t taken = 0;
  received(this);
  if (id_ != 0 && taken != id_) {
    taken = id_;
    place_this_thread(placement_);
  }
  published(this);
}

}  // namespace cedar::kernels::cpu
