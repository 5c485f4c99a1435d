// The edges of Engram's tables: each whole table, or each shard of one, to the stage of its layer.
#include <algorithm>
#include <numeric>

#include "kernels/base/check.hpp"
#include "runtime/model/engram_hash.hpp"
#include "topology/plan/internal/planner.hpp"

namespace cedar::topology::internal {

namespace {

/// Of each column of the table that the shard has rows of, the share that it has: a row of a step
/// needs one row of each column, and any is as likely as another.
std::vector<double> shares_of(const model::engram_shard& shard, const model::model_config& config) {
  const auto tables = model::make_engram_tables(config);
  CEDAR_REQUIRE(tables.has_value(), "the tables were checked");
  const auto module =
      std::ranges::find(tables->modules, shard.layer, &model::engram_module_tables::layer);
  CEDAR_REQUIRE(module != tables->modules.end(), "layers of shards were checked");
  std::vector<double> shares;
  for (std::size_t column = 0; column < module->primes.size(); ++column) {
    const std::uint64_t first = std::max(module->offsets[column], shard.first_row);
    const std::uint64_t end =
        std::min(module->offsets[column] + module->primes[column], shard.end_row);
    if (first < end)
      shares.push_back(static_cast<double>(end - first) /
                       static_cast<double>(module->primes[column]));
  }
  return shares;
}

}  // namespace

void planner::connect_engram(unit_id stage) {
  const auto role = std::get<stage_role>(plan_[stage].role);
  for (const std::uint32_t layer : role.engram_layers)
    for (const unit_id holder : engram_) {
      const auto shards = std::get<engram_role>(plan_[holder].role).shards;
      for (const model::engram_shard& shard : shards) {
        if (shard.layer != layer) continue;
        if (std::ranges::count(role.engram_shards, shard) > 0)
          connect_shard(holder, stage, shard);
        else
          connect(edge_kind::engram_rows, holder, stage, engram_rows_size(config_), 0, layer);
      }
    }
}

void planner::connect_shard(unit_id holder, unit_id stage, const model::engram_shard& shard) {
  const std::vector<double> shares = shares_of(shard, config_);
  const std::uint32_t steps = plan_.limits_.steps_in_flight;
  step_shape largest = plan_.limits_.largest_step(config_);
  largest.table_rows = largest.rows * shares.size();
  edge_plan edge = new_edge(edge_kind::engram_slots, holder, stage);
  edge.layer = shard.layer;
  edge.slice = shard.number;
  edge.name += " of layer " + std::to_string(shard.layer);
  edge.table_rows_a_row = std::accumulate(shares.begin(), shares.end(), 0.0);
  edge.size = engram_slots_size(config_);
  edge.step_bytes_max = edge.size.bytes(largest);
  edge.message_bytes_max = edge.step_bytes_max + replay_room();
  edge.window_messages = steps;
  edge.window_bytes = steps * edge.message_bytes_max;
  edge.queue_messages_max = steps;
  plan_.edges_.push_back(std::move(edge));
}

}  // namespace cedar::topology::internal
