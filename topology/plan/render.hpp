// A plan for people and for programs.
#pragma once

#include <string>

#include "topology/plan/costs.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology {

/// Placement, memory, edges with bytes per row and per step, links with the time they take, splits
/// compared, bounds: a few lines for each, no colours, ends with a newline.
std::string render_plan(const plan& planned, const cost_basis& basis);
/// The same at the plan's limits.
std::string render_plan(const plan& planned);

/// The links that the file declares, those that are alike in both directions as one: "front <->
/// back 20 ms, 1000 Mbit/s; back -> far 3 ms".
std::string render_links(const plan& planned);

/// The same numbers as one JSON object; README.md beside this file describes its layout.
std::string render_json(const plan& planned, const cost_basis& basis);

/// A drawing: nodes around devices around units in the order of rows, and the edges of rows between
/// them with the bytes of a decode row and the time of a decode step on declared links. Step
/// tables, verdicts and taps, which go everywhere, are left out.
std::string render_svg(const plan& planned, const cost_basis& basis);

}  // namespace cedar::topology
