// Where the edges of a plan end at one node: what its units are bound with, and whom its
// switchboard hears. Pure: whoever runs the node says which actor stands for a unit.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "actors/link_actor.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology {

/// The actor that takes the packets for `unit` on `node`: the unit itself, or the link to its node.
using sink_finder = std::function<actors::packet_sink(unit_id unit, node_id node)>;

/// All edge ends of `unit`, for the model with this fingerprint.
std::vector<actors::edge_end> edge_ends(const plan& topology, unit_id unit,
                                        std::uint64_t fingerprint, const sink_finder& sink_of);

/// The edges that cross between `self` and another node.
std::map<edge_id, actors::switchboard_entry> crossing_edges(const plan& topology, node_id self,
                                                            const sink_finder& sink_of);

}  // namespace cedar::topology
