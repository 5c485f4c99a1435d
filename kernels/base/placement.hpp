// Where the threads of a device run: processors, memory, priority.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace cedar::kernels {

struct thread_placement {
  std::vector<std::uint32_t> processors;  ///< by the host's numbers, ascending; empty: any
  /// Memory that the threads touch first comes from this node while it has some.
  std::optional<std::uint32_t> numa_node;
  std::uint32_t nice = 0;  ///< 0 to 19, as nice(1) counts; never below what the process has

  friend bool operator==(const thread_placement&, const thread_placement&) = default;
};

/// Those that this process may use (sched_getaffinity), ascending.
std::vector<std::uint32_t> usable_processors();

/// Those of a NUMA node of this host, ascending; empty if it has no such node.
std::vector<std::uint32_t> processors_of_numa_node(std::uint32_t node);

/// Puts the calling thread there, for good: a thread cannot take a lower nice value back. What the
/// system refuses is left as it is.
void place_this_thread(const thread_placement& placement) noexcept;

}  // namespace cedar::kernels
