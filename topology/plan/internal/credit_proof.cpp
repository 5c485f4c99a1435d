#include "topology/plan/internal/credit_proof.hpp"

#include <algorithm>
#include <set>

namespace cedar::topology::internal {

namespace {

/// What goes to units that answer may lead back.
bool leads_back(const proof_edge& edge) {
  return edge.role == edge_role::request || edge.role == edge_role::feed;
}

/// Follows edges among the units that have predecessors left until one repeats; there is such a
/// walk because each of them has an incoming edge from another of them.
std::string describe_cycle(std::uint32_t start, const std::vector<proof_edge>& edges,
                           const std::vector<bool>& stuck) {
  std::vector<std::uint32_t> walk{start};
  std::vector<std::string> names;
  while (true) {
    const auto incoming = std::find_if(edges.begin(), edges.end(), [&](const proof_edge& edge) {
      return !leads_back(edge) && edge.consumer == walk.back() && stuck[edge.producer];
    });
    names.push_back(incoming->name);
    const auto seen = std::find(walk.begin(), walk.end(), incoming->producer);
    if (seen != walk.end()) {
      std::string text = "edges wait for each other in a circle: ";
      const auto begin = static_cast<std::size_t>(seen - walk.begin());
      for (std::size_t i = names.size(); i-- > begin;) {
        text += "'" + names[i] + "'" + (i == begin ? "" : ", ");
      }
      return text;
    }
    walk.push_back(incoming->producer);
  }
}

std::string describe_small_windows(std::uint32_t steps_in_flight,
                                   const std::vector<proof_edge>& edges) {
  std::string text;
  for (const proof_edge& edge : edges) {
    const bool in_flight = edge.role == edge_role::stream || edge.role == edge_role::feed;
    const std::uint64_t messages =
        (in_flight ? steps_in_flight : 1) * std::uint64_t{edge.messages_per_step};
    const bool fits =
        edge.window_messages >= messages && edge.window_bytes >= edge.message_bytes_max * messages;
    if (fits) continue;
    text += text.empty() ? "windows too small for the steps in flight: '" : ", '";
    text += edge.name + "'";
  }
  return text;
}

/// True if streams lead from `from` to `to`; `order` has every producer before its consumers.
bool streams_lead(std::uint32_t from, std::uint32_t to, const std::vector<proof_edge>& inner,
                  const std::vector<std::uint32_t>& order) {
  std::set<std::uint32_t> reached{from};
  for (const std::uint32_t unit : order)
    if (std::ranges::any_of(inner, [&](const proof_edge& edge) {
          return edge.role == edge_role::stream && edge.consumer == unit &&
                 reached.contains(edge.producer);
        }))
      reached.insert(unit);
  return from != to && reached.contains(to);
}

/// True if nothing but requests comes to `unit`, and feeds with what the scheduler sends about
/// them.
bool only_answers(std::uint32_t unit, std::uint32_t scheduler,
                  const std::vector<proof_edge>& edges) {
  const bool fed = std::ranges::any_of(edges, [&](const proof_edge& edge) {
    return edge.consumer == unit && edge.role == edge_role::feed;
  });
  return std::ranges::all_of(edges, [&](const proof_edge& edge) {
    return edge.consumer != unit || leads_back(edge) || (fed && edge.producer == scheduler);
  });
}

std::string describe_unanswered(std::uint32_t scheduler, const std::vector<proof_edge>& edges,
                                const std::vector<proof_edge>& inner,
                                const std::vector<std::uint32_t>& order) {
  std::string text;
  for (const proof_edge& request : inner) {
    if (request.role != edge_role::request) continue;
    const bool reply = std::ranges::any_of(inner, [&](const proof_edge& edge) {
      return edge.role == edge_role::reply && edge.producer == request.consumer &&
             edge.consumer == request.producer;
    });
    if (reply && (only_answers(request.consumer, scheduler, edges) ||
                  streams_lead(request.consumer, request.producer, inner, order)))
      continue;
    text += text.empty() ? "requests that may never be answered: '" : ", '";
    text += request.name + "'";
  }
  return text;
}

}  // namespace

tl::expected<std::vector<std::uint32_t>, std::string> prove_no_deadlock(
    std::uint32_t units_count, std::uint32_t scheduler, std::uint32_t steps_in_flight,
    const std::vector<proof_edge>& edges) {
  std::vector<proof_edge> inner;
  std::copy_if(edges.begin(), edges.end(), std::back_inserter(inner), [&](const proof_edge& edge) {
    return edge.producer != scheduler && edge.consumer != scheduler;
  });
  // Kahn's algorithm: take units without predecessors left, lowest first, until none is left.
  std::vector<bool> stuck(units_count, true);
  std::vector<std::uint32_t> order;
  for (bool progress = true; progress;) {
    progress = false;
    for (std::uint32_t unit = 0; unit < units_count; ++unit) {
      const bool waits = std::any_of(inner.begin(), inner.end(), [&](const proof_edge& edge) {
        return !leads_back(edge) && edge.consumer == unit && stuck[edge.producer];
      });
      if (!stuck[unit] || waits) continue;
      stuck[unit] = false;
      order.push_back(unit);
      progress = true;
    }
  }
  const auto left = std::find(stuck.begin(), stuck.end(), true);
  if (left != stuck.end()) {
    return tl::unexpected(
        describe_cycle(static_cast<std::uint32_t>(left - stuck.begin()), inner, stuck));
  }
  const std::string unanswered = describe_unanswered(scheduler, edges, inner, order);
  if (!unanswered.empty()) return tl::unexpected(unanswered);
  const std::string small = describe_small_windows(steps_in_flight, edges);
  if (!small.empty()) return tl::unexpected(small);
  return order;
}

}  // namespace cedar::topology::internal
