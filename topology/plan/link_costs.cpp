#include "topology/plan/link_costs.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace cedar::topology {

namespace {

using time = std::chrono::nanoseconds;

std::uint64_t bytes_of(const plan& planned, edge_id edge, step_kind step, const cost_basis& basis) {
  const edge_cost cost = cost_of(planned, edge, basis);
  return step == step_kind::decode ? cost.decode_step : cost.largest_step;
}

/// Finds the longest way unit by unit: all edges of a step but requests lead to later units, and
/// the proposal back to the scheduler.
class path_finder {
 public:
  path_finder(const plan& planned, step_kind step, const cost_basis& basis)
      : plan_(planned), step_(step), basis_(basis), paths_(planned.units().size()) {}

  link_path find() {
    link_path longest;
    for (const edge_plan& edge : plan_.edges())
      if (edge.kind == edge_kind::proposal) longest = along(edge);
    return longest;
  }

 private:
  static bool is_input(edge_kind kind) {
    return !is_request(kind) && !is_reply(kind) && kind != edge_kind::verdict &&
           kind != edge_kind::proposal && kind != edge_kind::tap &&
           kind != edge_kind::draft_orders && kind != edge_kind::draft_answers &&
           kind != edge_kind::image && kind != edge_kind::image_rows;
  }

  /// What the unit waits for, and what it asks for itself.
  link_path until(unit_id unit) {
    std::optional<link_path>& known = paths_[unit.value];
    if (known) return *known;
    link_path longest;
    for (const edge_id id : plan_.edges_into(unit)) {
      if (!is_input(plan_[id].kind)) continue;
      link_path way = along(plan_[id]);
      if (way.time > longest.time) longest = std::move(way);
    }
    // One group after another, there and back.
    for (const edge_id id : plan_.edges_out_of(unit))
      if (plan_[id].kind == edge_kind::gather_request) add_round_trips(plan_[id], longest);
    for (const bool queries : {true, false}) add_trips_by_layer(unit, queries, longest);
    known = longest;
    return longest;
  }

  link_path along(const edge_plan& edge) {
    link_path way = until(edge.producer);
    add(edge, 1, way);
    return way;
  }

  /// To what is asked in the group `group`.
  const edge_plan& reply_to(const edge_plan& request, std::uint32_t group) const {
    return *std::ranges::find_if(plan_.edges(), [&](const edge_plan& edge) {
      return is_reply(edge.kind) && edge.producer == request.consumer &&
             edge.consumer == request.producer && edge.layer == request.layer &&
             edge.slice == request.slice && edge.of_queries() == request.of_queries() &&
             std::ranges::find(edge.groups, group) != edge.groups.end();
    });
  }

  void add_round_trips(const edge_plan& request, link_path& way) {
    add(request, request.messages_per_step(), way);
    const edge_plan& reply = reply_to(request, request.groups.front());
    add(reply, reply.messages_per_step(), way);
  }

  /// Of one message of several.
  time single(const edge_plan& edge) {
    link_path way;
    add(edge, edge.messages_per_step(), way);
    return way.time / edge.messages_per_step();
  }

  /// Layer by layer, to the indexer or slice of experts that takes longest: those of a layer are
  /// asked at once.
  void add_trips_by_layer(unit_id stage, bool queries, link_path& way) {
    std::map<std::uint32_t, std::pair<time, const edge_plan*>> slowest;  // by layer
    for (const edge_id id : plan_.edges_out_of(stage)) {
      const edge_plan& request = plan_[id];
      if (!is_request(request.kind) || !(queries ? request.of_queries() : request.follows_routes()))
        continue;
      for (const std::uint32_t layer : request.groups) {
        const std::pair trip{single(request) + single(reply_to(request, layer)), &request};
        const auto [known, first] = slowest.try_emplace(layer, trip);
        if (!first && trip.first > known->second.first) known->second = trip;
      }
    }
    std::set<edge_id> named;
    for (const auto& [layer, trip] : slowest) {
      way.time += trip.first;
      for (const edge_plan* edge : {trip.second, &reply_to(*trip.second, layer)})
        if (plan_.link(edge->from, edge->to) != nullptr && edge->crosses() &&
            named.insert(edge->id).second)
          way.edges.push_back(edge->id);
    }
  }

  /// `rounds` messages, each sent when the one before is of no more interest.
  void add(const edge_plan& edge, std::uint32_t rounds, link_path& way) {
    const auto all = time_on_link(plan_, edge.id, step_, basis_);
    if (!all) return;
    way.time += *all + (rounds - 1) * plan_.link(edge.from, edge.to)->latency;
    way.edges.push_back(edge.id);
  }

  const plan& plan_;
  const step_kind step_;
  const cost_basis& basis_;
  std::vector<std::optional<link_path>> paths_;  ///< of the units done
};

}  // namespace

std::optional<time> time_on_link(const plan& planned, edge_id edge, step_kind step,
                                 const cost_basis& basis) {
  const edge_plan& at = planned[edge];
  const link_shape* shape = at.crosses() ? planned.link(at.from, at.to) : nullptr;
  if (shape == nullptr || at.kind == edge_kind::tap) return std::nullopt;
  return shape->passage(bytes_of(planned, edge, step, basis));
}

std::vector<link_cost> link_costs_of(const plan& planned, const cost_basis& basis) {
  std::map<std::pair<node_id, node_id>, link_cost> links;
  const auto link = [&](node_id from, node_id to) -> link_cost& {
    link_cost& entry = links[{from, to}];
    entry.from = from;
    entry.to = to;
    return entry;
  };
  for (const link_plan& declared : planned.links())
    link(declared.from, declared.to).shape = declared.shape;
  for (const edge_plan& edge : planned.edges()) {
    if (!edge.crosses() || edge.kind == edge_kind::tap) continue;
    link_cost& entry = link(edge.from, edge.to);
    entry.decode_step += bytes_of(planned, edge.id, step_kind::decode, basis);
    entry.full_step += bytes_of(planned, edge.id, step_kind::full, basis);
  }
  std::vector<link_cost> out;
  for (auto& [ends, entry] : links) {
    entry.per_second = static_cast<double>(entry.decode_step) * basis.steps_per_second;
    if (entry.shape) {
      entry.decode_time = entry.shape->passage(entry.decode_step);
      entry.full_time = entry.shape->passage(entry.full_step);
      if (entry.shape->bytes_per_second > 0)
        entry.busy = entry.per_second / entry.shape->bytes_per_second;
    }
    out.push_back(entry);
  }
  return out;
}

link_path longest_link_path(const plan& planned, step_kind step, const cost_basis& basis) {
  return path_finder(planned, step, basis).find();
}

}  // namespace cedar::topology
