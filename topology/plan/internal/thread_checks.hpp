// What devices ask for their threads.
#pragma once

#include <vector>

#include "topology/document/document.hpp"

namespace cedar::topology::internal {

/// Reports threads, cores and nice values that contradict each other. What the host has is not
/// known here (topology/launch/thread_placement).
void check_threads(const document& topology, std::vector<diagnostic>& out);

}  // namespace cedar::topology::internal
