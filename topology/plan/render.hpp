// A plan for people.
#pragma once

#include <string>

#include "topology/plan/plan.hpp"

namespace cedar::topology {

/// Placement, edges with bytes per row and per step, credits, bounds: a few lines for each, no
/// colours, ends with a newline.
std::string render_plan(const plan& planned);

}  // namespace cedar::topology
