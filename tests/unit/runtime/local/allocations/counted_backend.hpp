// A backend that passes every call on to another one, and notes what was allocated inside calls and
// from one call to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/ops/backend.hpp"

namespace cedar::test {

/// One call of a kernel.
struct counted_call {
  const char* operation;  ///< a literal
  std::uint64_t before;  ///< allocations of the program when it began
  std::uint64_t after;  ///< and when it ended
};

/// Calls since the last clear(); noting them allocates nothing up to `calls_max`.
struct call_log {
  static constexpr std::size_t calls_max = std::size_t{1} << 16;

  call_log() { calls.reserve(calls_max); }
  void clear() { calls.clear(); }

  std::vector<counted_call> calls;
};

/// `inner` and `log` must outlive it.
std::unique_ptr<kernels::backend> make_counted_backend(const kernels::backend& inner,
                                                       call_log& log);

}  // namespace cedar::test
