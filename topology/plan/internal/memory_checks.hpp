// Whether what a device has is enough for its units.
#pragma once

#include <vector>

#include "topology/document/document.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology::internal {

/// Reports devices whose `memory` is less than their units need at the plan's limits. `planned` is
/// the plan of `topology`.
void check_memory(const document& topology, const plan& planned, std::vector<diagnostic>& out);

}  // namespace cedar::topology::internal
