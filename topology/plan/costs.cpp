#include "topology/plan/costs.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "runtime/model/schedule.hpp"
#include "runtime/model/sharing.hpp"

namespace cedar::topology {

namespace {

std::uint32_t last_position(const cost_basis& basis) {
  return std::max(basis.load.positions, 1U) - 1;
}

double entries_a_row(const edge_plan& edge, const model::schedule& schedule) {
  return edge.size.per_entry == 0 ? 0 : 1.0 / schedule[edge.layer].ratio;
}

double as_double(std::uint64_t bytes) {
  return static_cast<double>(bytes);
}

/// What a decode step of `rows` rows, each of its own request, has on an edge of a slice, if all
/// experts are chosen alike.
edge_cost routed_cost(const plan& planned, const edge_plan& edge, double rows) {
  const model::model_config& config = planned.model();
  const unit_id holder = edge.kind == edge_kind::expert_rows ? edge.consumer : edge.producer;
  const auto held =
      static_cast<double>(std::get<experts_role>(planned[holder].role).slice.experts.size());
  const double experts = config.routed_experts;
  double none = 1;  // probability that a row chooses no expert of the slice
  for (std::uint32_t i = 0; i < config.experts_per_token; ++i)
    none *= std::max(experts - held - i, 0.0) / (experts - i);
  const double layers = edge.messages_per_step();
  edge_cost cost;
  cost.decode_row =
      layers * ((1 - none) * as_double(edge.size.per_routed_row) +
                config.experts_per_token * held / experts * as_double(edge.size.per_choice));
  const double messages = layers * (1 - std::pow(none, rows));
  cost.decode_step = static_cast<std::uint64_t>(
      rows * cost.decode_row + messages * rows * as_double(edge.size.per_request) + 0.5);
  cost.largest_step = edge.step_bytes_max;
  return cost;
}

/// What a decode step of `rows` rows, each of its own request, has of new keys for a shard, whose
/// blocks are wherever the requests are.
edge_cost keys_cost(const edge_plan& edge, const model::index_shard& shard, std::uint32_t ratio,
                    double rows) {
  const double some = 1.0 / ratio / shard.parts;  // probability that a row makes one
  edge_cost cost;
  cost.decode_row = some * as_double(edge.size.per_entry);
  const double messages = 1 - std::pow(1 - some, rows);
  cost.decode_step = static_cast<std::uint64_t>(
      rows * cost.decode_row + messages * rows * as_double(edge.size.per_request) + 0.5);
  cost.largest_step = edge.step_bytes_max;
  return cost;
}

/// What it has on an edge of queries or choices.
edge_cost queries_cost(const edge_plan& edge, const model::index_shard& shard,
                       std::uint32_t visible, double rows) {
  const double messages = shard.count(visible) > 0 ? edge.messages_per_step() : 0;
  edge_cost cost;
  cost.decode_row = messages * as_double(edge.size.per_asking_row);
  cost.decode_step = static_cast<std::uint64_t>(
      rows * (cost.decode_row + messages * as_double(edge.size.per_request)) + 0.5);
  cost.largest_step = edge.step_bytes_max;
  return cost;
}

/// Index sources by which the layers of a stage read `owner`.
std::set<std::uint32_t> groups_of(const stage_role& stage, const model::schedule& schedule,
                                  std::uint32_t owner) {
  std::set<std::uint32_t> sources;
  for (std::uint32_t layer = stage.layers.first; layer <= stage.layers.last; ++layer)
    if (schedule[layer].owner == owner) sources.insert(*schedule[layer].index_source);
  return sources;
}

}  // namespace

cost_basis largest_basis(const plan& planned) noexcept {
  return {largest_load(planned), 0};
}

edge_cost cost_of(const plan& planned, edge_id id, const cost_basis& basis) {
  const edge_plan& edge = planned[id];
  const model::model_config& config = planned.model();
  const model::schedule schedule(config);
  const std::uint64_t requests = std::min(basis.load.requests, planned.limits().rows_per_step);
  const auto at_rate = [&](edge_cost cost) {
    cost.per_second = as_double(cost.decode_step) * basis.steps_per_second;
    return cost;
  };
  if (edge.follows_routes()) return at_rate(routed_cost(planned, edge, as_double(requests)));
  if (const model::index_shard* shard = planned.shard_of(edge)) {
    const std::uint32_t ratio = schedule[shard->owner].ratio;
    return at_rate(
        edge.kind == edge_kind::index_keys
            ? keys_cost(edge, *shard, ratio, as_double(requests))
            : queries_cost(edge, *shard, (last_position(basis) + 1) / ratio, as_double(requests)));
  }
  // Every message of the step has the rows; a gathered one what they chose at its source.
  std::uint64_t selected = 0;
  for (const std::uint32_t source : edge.groups)
    selected += model::selected_count(config, schedule[source], last_position(basis));
  const message_size& size = edge.size;
  edge_cost cost;
  cost.decode_row =
      edge.messages_per_step() *
          as_double(size.per_row + size.per_decoder_row + size.per_wanted + size.per_tapped_row +
                    size.per_earlier_id * config.engram_lookback()) +
      as_double(size.per_entry) * entries_a_row(edge, schedule) +
      as_double(size.per_selected * selected);
  // A decode row is none of an image.
  if (edge.kind == edge_kind::image_rows) return {.largest_step = edge.step_bytes_max};
  cost.decode_row += as_double(size.per_table_row) * edge.table_rows_a_row;
  const double spans = as_double(edge.messages_per_step() * size.per_request + size.per_order +
                                 size.per_drafted_token * planned.limits().draft_tokens);
  cost.decode_step =
      static_cast<std::uint64_t>(as_double(requests) * (cost.decode_row + spans) + 0.5);
  cost.largest_step = edge.step_bytes_max;
  cost.per_second = as_double(cost.decode_step) * basis.steps_per_second;
  return cost;
}

std::vector<split_cost> splits_of(const plan& planned, const cost_basis& basis) {
  const model::model_config& config = planned.model();
  const model::schedule schedule(config);
  std::map<std::uint32_t, split_cost> splits;
  for (const unit_plan& unit : planned.units()) {
    const auto* stage = std::get_if<stage_role>(&unit.role);
    if (stage == nullptr) continue;
    for (const bool gather : {false, true})
      for (const std::uint32_t owner : gather ? stage->imports.gathered : stage->imports.entries) {
        split_cost& split = splits[owner];
        split.owner = owner;
        split.gather = gather;
        split.readers.push_back(unit.id);
        const std::uint32_t ratio = schedule[owner].ratio;
        split.mirror_row += as_double(shared_kv_size(config).per_entry) / ratio;
        for (const std::uint32_t source : groups_of(*stage, schedule, owner))
          split.gather_row +=
              as_double(selection_size(config, false).per_row) +
              as_double(gathered_size(config).per_selected *
                        model::selected_count(config, schedule[source], last_position(basis)));
        split.mirror_memory += global_bytes(planned, ratio, true, false, basis.load);
      }
  }
  std::vector<split_cost> out;
  for (auto& [owner, split] : splits) out.push_back(std::move(split));
  return out;
}

}  // namespace cedar::topology
