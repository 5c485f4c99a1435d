// What the links that a file declares make of a cut: time, beside bytes.
//
// Times are least ones: from handing a step's bytes to a free link until the last has arrived,
// without headers, jitter and losses.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "topology/plan/costs.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology {

enum class step_kind : std::uint8_t {
  decode,  ///< one row of each request of the load
  full,  ///< the largest: prompt rows, as many as a step takes
};

/// Of all messages that a step has on an edge; none if the edge crosses no declared link.
std::optional<std::chrono::nanoseconds> time_on_link(const plan& planned, edge_id edge,
                                                     step_kind step, const cost_basis& basis);

/// All that crosses from one node to another.
struct link_cost {
  node_id from;
  node_id to;
  std::optional<link_shape> shape;  ///< none: the file declares no link there
  std::uint64_t decode_step = 0;  ///< bytes
  std::uint64_t full_step = 0;
  std::optional<std::chrono::nanoseconds> decode_time;
  std::optional<std::chrono::nanoseconds> full_time;
  double per_second = 0;  ///< bytes of decode steps, at the stated rate
  /// Of its bandwidth, by decode steps at the stated rate; above 1 the rate cannot be reached.
  double busy = 0;
};
/// Every direction that is declared or crossed, by node ids.
std::vector<link_cost> link_costs_of(const plan& planned, const cost_basis& basis);

/// The way through a step that is longest on declared links, computing aside: from the scheduler's
/// table to the proposal, requests for entries or to experts and their replies included. The next
/// token of an answer waits for it.
struct link_path {
  std::chrono::nanoseconds time{0};  ///< each message alone on its link
  std::vector<edge_id> edges;  ///< those of it that cross declared links, in order
};
link_path longest_link_path(const plan& planned, step_kind step, const cost_basis& basis);

}  // namespace cedar::topology
