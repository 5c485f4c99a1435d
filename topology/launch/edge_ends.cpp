#include "topology/launch/edge_ends.hpp"

namespace cedar::topology {

std::vector<actors::edge_end> edge_ends(const plan& topology, unit_id unit,
                                        std::uint64_t fingerprint, const sink_finder& sink_of) {
  std::vector<actors::edge_end> ends;
  for (const edge_plan& edge : topology.edges()) {
    const bool outbound = edge.producer == unit;
    if (!outbound && edge.consumer != unit) continue;
    actors::edge_end end;
    end.contract = topology.contract(edge.id, fingerprint);
    end.outbound = outbound;
    end.carries = to_string(edge.kind);
    end.layer = edge.layer;
    end.reader = edge.reader;
    end.slice = edge.slice;
    end.to_drafter = outbound && std::holds_alternative<drafter_role>(topology[edge.consumer].role);
    end.queue_messages_max = edge.queue_messages_max;
    end.peer = outbound ? sink_of(edge.consumer, edge.to) : sink_of(edge.producer, edge.from);
    ends.push_back(std::move(end));
  }
  return ends;
}

std::map<edge_id, actors::switchboard_entry> crossing_edges(const plan& topology, node_id self,
                                                            const sink_finder& sink_of) {
  std::map<edge_id, actors::switchboard_entry> entries;
  for (const edge_plan& edge : topology.edges()) {
    if (!edge.crosses()) continue;
    if (edge.to == self) entries[edge.id] = {edge.from, true, sink_of(edge.consumer, edge.to)};
    if (edge.from == self) entries[edge.id] = {edge.to, false, sink_of(edge.producer, edge.from)};
  }
  return entries;
}

}  // namespace cedar::topology
