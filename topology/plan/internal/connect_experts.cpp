// The edges of slices of experts: each stage of their layers asks, and is answered.
#include "topology/plan/internal/planner.hpp"

#include <algorithm>

namespace cedar::topology::internal {

void planner::connect_by_layer(edge_plan edge, const message_size& size,
                               const step_shape& largest) {
  edge.size = size;
  edge.message_bytes_max = size.bytes(largest) + replay_room();
  edge.step_bytes_max = edge.messages_per_step() * edge.message_bytes_max;
  // A layer asks when the layer before has been answered.
  edge.window_messages = 1;
  edge.window_bytes = edge.message_bytes_max;
  edge.queue_messages_max = 1;
  plan_.edges_.push_back(std::move(edge));
}

void planner::connect_experts(unit_id stage) {
  const auto role = std::get<stage_role>(plan_[stage].role);
  for (const model::expert_slice& slice : role.experts_elsewhere) {
    const auto add = [&](edge_kind kind, unit_id producer, unit_id consumer,
                         const message_size& size) {
      edge_plan edge = new_edge(kind, producer, consumer);
      edge.reader = role.layers.first;
      edge.slice = slice.number;
      for (std::uint32_t layer = role.layers.first; layer <= role.layers.last; ++layer)
        if (slice.holds(layer)) edge.groups.push_back(layer);
      step_shape largest = plan_.limits_.largest_step(config_);
      largest.routed_rows = largest.rows;
      largest.choices =
          largest.rows * std::min<std::uint64_t>(config_.experts_per_token, slice.experts.size());
      connect_by_layer(std::move(edge), size, largest);
    };
    const unit_id holder = experts_.at(slice.number);
    add(edge_kind::expert_rows, stage, holder, expert_rows_size(config_));
    add(edge_kind::expert_outputs, holder, stage, expert_outputs_size(config_));
  }
}

}  // namespace cedar::topology::internal
