// The edges of indexers: the owner's stage feeds them, each stage with an index source asks.
#include <algorithm>

#include "topology/plan/internal/planner.hpp"

namespace cedar::topology::internal {

void planner::connect_index_keys(unit_id stage) {
  const auto role = std::get<stage_role>(plan_[stage].role);
  for (const model::index_shard& shard : role.indexers) {
    if (shard.owner < role.layers.first) continue;
    connect(edge_kind::index_keys, stage, indexers_.at(shard.number), index_keys_size(config_), 0,
            shard.owner);
    plan_.edges_.back().slice = shard.number;
  }
}

void planner::connect_queries(unit_id stage) {
  const auto role = std::get<stage_role>(plan_[stage].role);
  for (const model::index_shard& shard : role.indexers) {
    const auto add = [&](edge_kind kind, unit_id producer, unit_id consumer,
                         const message_size& size, const auto& concerns) {
      edge_plan edge = new_edge(kind, producer, consumer);
      edge.reader = role.layers.first;
      edge.slice = shard.number;
      for (std::uint32_t layer = role.layers.first; layer <= role.layers.last; ++layer)
        if (schedule_[layer].owner == shard.owner && schedule_[layer].index_source == layer &&
            concerns(schedule_[layer]))
          edge.groups.push_back(layer);
      if (edge.groups.empty()) return;
      step_shape largest = plan_.limits_.largest_step(config_);
      largest.asking_rows = largest.rows;
      connect_by_layer(std::move(edge), size, largest);
    };
    const unit_id holder = indexers_.at(shard.number);
    for (const bool restricted : {false, true})
      add(restricted ? edge_kind::pool_query : edge_kind::index_query, stage, holder,
          query_size(config_, restricted),
          [&](const model::layer_schedule& layer) { return layer.uses_candidates == restricted; });
    for (const bool candidates : {false, true})
      add(candidates ? edge_kind::pool_choice : edge_kind::index_choice, holder, stage,
          choice_size(config_, candidates),
          [&](const model::layer_schedule& layer) { return layer.makes_candidates == candidates; });
  }
}

}  // namespace cedar::topology::internal
