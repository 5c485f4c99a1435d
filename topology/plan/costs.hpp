// What edges carry at a stated load, and what the two modes of a split would.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topology/plan/memory.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology {

/// What a person wants to know the costs at.
struct cost_basis {
  memory_load load;  ///< requests that decode at a time, each at its last position
  double steps_per_second = 0;  ///< 0: not stated
};
/// The plan's limits, no rate.
cost_basis largest_basis(const plan& planned) noexcept;

/// Bytes of an ordinary edge, without diagnostics and sampling options. Zero for taps. Edges of
/// slices of experts: on average, if every expert is chosen as often as any other. Index keys for
/// shards: on average over the positions.
struct edge_cost {
  double decode_row = 0;  ///< of one more row of one position; an entry of ratio 2 is half a row's
  std::uint64_t decode_step = 0;  ///< one row of each request of the load
  std::uint64_t largest_step = 0;
  double per_second = 0;  ///< of decode steps, at the stated rate
};
edge_cost cost_of(const plan& planned, edge_id edge, const cost_basis& basis);

/// A split of the plan, priced in both modes over all stages that read the owner.
struct split_cost {
  std::uint32_t owner = 0;
  bool gather = false;  ///< as the file says
  std::vector<unit_id> readers;
  double mirror_row = 0;  ///< new main entries, bytes a decode row
  double gather_row = 0;  ///< requests and replies, bytes a decode row
  std::uint64_t mirror_memory = 0;  ///< replicas of main entries at the load
};
/// By owner. Index keys, selections and candidates travel in both modes alike and are left out.
std::vector<split_cost> splits_of(const plan& planned, const cost_basis& basis);

}  // namespace cedar::topology
