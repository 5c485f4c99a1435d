#include "kernels/cpu/internal/thread_places.hpp"

#include <atomic>

namespace cedar::kernels::cpu {

namespace {

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

thread_places::thread_places(const thread_placement& placement)
    : placement_(placement), id_(placement == thread_placement{} ? 0 : next_id()) {}

void thread_places::take_this_thread() const noexcept {
  thread_local std::uint64_t taken = 0;
  if (id_ == 0 || taken == id_) return;
  taken = id_;
  place_this_thread(placement_);
}

}  // namespace cedar::kernels::cpu
