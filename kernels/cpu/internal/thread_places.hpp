// Which thread has been placed for which device: placing costs system calls, and is done once.
#pragma once

#include <cstdint>

#include "kernels/base/placement.hpp"

namespace cedar::kernels::cpu {

class thread_places {
 public:
  explicit thread_places(const thread_placement& placement);
  ~thread_places();
  thread_places(const thread_places&) = delete;
  thread_places& operator=(const thread_places&) = delete;

  /// Whether anything is asked for: else no thread needs to come here.
  bool wanted() const noexcept { return id_ != 0; }

  /// Places the calling thread, unless it was placed here last.
  void take_this_thread() const noexcept;

 private:
  thread_placement placement_;
  std::uint64_t id_;  ///< 0: nothing is asked for
};

}  // namespace cedar::kernels::cpu
