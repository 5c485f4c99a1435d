// Checks of `links`: between nodes that exist, each direction described once.
#pragma once

#include <vector>

#include "topology/document/document.hpp"

namespace cedar::topology::internal {

/// Reports links with unknown ends, from a node to itself, and directions described twice, and
/// strictness about none. Links that nothing of the topology crosses are fine: cuts move.
void check_links(const document& topology, std::vector<diagnostic>& out);

}  // namespace cedar::topology::internal
