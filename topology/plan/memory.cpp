#include "topology/plan/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "kernels/ops/entry_format.hpp"
#include "runtime/memory/kv_page_pool.hpp"
#include "runtime/model/compressor.hpp"
#include "runtime/model/manifest.hpp"
#include "runtime/model/schedule.hpp"
#include "topology/plan/internal/element_bytes.hpp"
#include "topology/plan/tensor_placement.hpp"

namespace cedar::topology {

namespace {

// Rows that a verdict may take back (runtime/stage).
std::uint64_t ring_slack(const model::model_config& config) noexcept {
  return config.dspark.block_size + 1;
}

/// What a stage keeps of a target layer, and the drafter of each.
std::uint64_t tap_ring_bytes(const model::model_config& config) noexcept {
  return tapped_rows_max(config) * config.width * bf16_bytes;
}

bool has(const std::vector<std::uint32_t>& layers, std::uint32_t layer) {
  return std::ranges::find(layers, layer) != layers.end();
}

std::uint64_t kv_of(const stage_role& stage, const plan& planned, const memory_load& load) {
  const model::model_config& config = planned.model();
  const model::schedule schedule(config);
  const std::uint64_t slack = ring_slack(config);
  const std::uint64_t window_row =
      kernels::entry_bytes(model::window_entry_format, config.head_dim);
  const std::uint64_t pending_row = 2 * config.head_dim * f32_bytes;
  std::uint64_t rings = stage.layers.layers_count() * (config.window + slack) * window_row +
                        stage.tapped_layers.size() * tap_ring_bytes(config);
  std::uint64_t pages = 0;
  for (std::uint32_t layer = stage.layers.first; layer <= stage.layers.last; ++layer) {
    const model::layer_schedule& entry = schedule[layer];
    if (entry.mode != model::layer_mode::full) continue;
    const bool keys = std::ranges::count(stage.indexers, layer, &model::index_shard::owner) == 0;
    pages += global_bytes(planned, entry.ratio, true, keys, load);
    if (entry.ratio > 1) rings += (entry.ratio - 1 + slack) * pending_row;
  }
  for (const std::uint32_t owner : config.kv_sources) {
    const bool entries = has(stage.imports.entries, owner);
    const bool keys = has(stage.imports.index_keys, owner);
    if (entries || keys) pages += global_bytes(planned, schedule[owner].ratio, entries, keys, load);
  }
  return rings * load.requests + pages;
}

/// As runtime/stage bounds it: a part of what all requests, or the budget, have; a sequence may
/// have a block more, a page that it begins and one that it copies.
std::uint64_t kv_of_indexer(const model::index_shard& shard, const plan& planned,
                            const memory_load& load) {
  const model::model_config& config = planned.model();
  const limits_plan& limits = planned.limits();
  const std::uint64_t page_entries = memory::default_page_entries;
  const auto pages_of = [&](std::uint64_t entries) {
    return (entries + page_entries - 1) / page_entries;
  };
  const std::uint32_t ratio = model::schedule(config)[shard.owner].ratio;
  const std::uint64_t of_granule = limits.kv_granule / page_entries / ratio;
  const auto part_of = [&](std::uint64_t granules) {
    return granules / shard.parts * of_granule +
           (granules % shard.parts * of_granule + shard.parts - 1) / shard.parts;
  };
  const std::uint64_t more = pages_of(shard.block_entries) + 2;
  const std::uint64_t prefixes = limits.prefix_granules;
  const std::uint64_t pages =
      std::min(load.requests * pages_of(shard.count(load.positions / ratio)),
               part_of(limits.kv_granules) + load.requests * more) +
      (prefixes == 0 ? 0 : part_of(prefixes) + prefixes * more);
  return pages * page_entries *
         kernels::entry_bytes(model::index_entry_format, config.index_head_dim);
}

std::uint64_t kv_of_drafter(const model::model_config& config, const memory_load& load) {
  const std::uint64_t entries = config.dspark.blocks * tapped_rows_max(config) *
                                kernels::entry_bytes(model::window_entry_format, config.head_dim);
  return load.requests * (entries + config.dspark.target_layers.size() * tap_ring_bytes(config));
}

/// Embeddings of the images that have rows in steps that are not settled. Of each request at most
/// two lie partly outside of such steps: one that is begun and one whose first rows are committed.
std::uint64_t kv_of_vision(const plan& planned, const memory_load& load) {
  const model::model_config& config = planned.model();
  const limits_plan& limits = planned.limits();
  const std::uint64_t span =
      std::min<std::uint64_t>(config.vision.max_image_tokens, load.positions);
  const std::uint64_t rows = std::min<std::uint64_t>(
      std::uint64_t{load.requests} * load.positions,
      std::uint64_t{limits.steps_in_flight} * limits.rows_per_step + 2 * load.requests * span);
  return rows * config.width * bf16_bytes;
}

/// Of the largest image: its pixels and patches, the tower's rows of them, a stretch of inner
/// activations (runtime/vision/encoder.cpp), the aligner's cells.
std::uint64_t vision_working_bytes(const plan& planned) {
  const model::model_config& config = planned.model();
  const model::vision_config& vision = config.vision;
  constexpr std::uint64_t mlp_rows = 512;
  constexpr std::uint64_t tower_rows = 8;  // features, x, normed, q, k, v, a cell's, positions
  const std::uint64_t cells = image_cells_max(config, planned.limits().context);
  const std::uint64_t width = vision.width * bf16_bytes;
  const std::uint64_t patches = cells * vision.downsample * vision.downsample;
  return cells * cell_bytes(config) * (1 + bf16_bytes) + patches * tower_rows * width +
         mlp_rows * (width + 3 * vision.inner * bf16_bytes) + 3 * cells * config.width * bf16_bytes;
}

/// Bytes of a row while a layer works on it: what attention and experts hold, all at once, though
/// part of it is reused.
std::uint64_t layer_row_bytes(const model::model_config& config, const memory_load& load) {
  const std::uint64_t d = config.width;
  const std::uint64_t streams = config.streams * (d * bf16_bytes + f32_bytes);
  const std::uint64_t experts = config.experts_per_token + 1;
  const std::uint64_t attention =
      d * (bf16_bytes + 1) + config.q_rank * f32_bytes +
      2 * std::uint64_t{config.heads} * config.head_dim * bf16_bytes +
      std::uint64_t{config.o_groups} * config.o_rank * bf16_bytes +
      std::uint64_t{config.index_heads} * config.index_head_dim * bf16_bytes +
      load.positions * bf16_bytes + config.index_topk * f32_bytes;
  const std::uint64_t moe = config.routed_experts * f32_bytes +
                            experts * (2 * config.expert_inner * f32_bytes + d * bf16_bytes);
  const std::uint64_t engram =
      std::uint64_t{config.engram_columns()} * config.engram.head_dim * bf16_bytes + streams;
  return 3 * streams + attention + moe + engram;
}

/// Bytes of a row for those of Engram's tables that come in parts: put together for a step.
std::uint64_t joined_row_bytes(const stage_role& stage, const model::model_config& config) {
  return static_cast<std::uint64_t>(std::ranges::count_if(
             stage.engram_layers,
             [&](std::uint32_t layer) {
               return std::ranges::count(stage.engram_shards, layer, &model::engram_shard::layer) >
                      0;
             })) *
         engram_rows_size(config).per_row;
}

/// Of a slice: the rows of all choices, grouped by expert, and what experts make of them before
/// their outputs, which are made where they leave from.
std::uint64_t working_of_experts(const model::expert_slice& slice,
                                 const model::model_config& config, std::uint64_t rows) {
  const std::uint64_t d = config.width;
  const std::uint64_t inner = config.expert_inner;
  const std::uint64_t choices =
      rows * std::min<std::uint64_t>(config.experts_per_token, slice.experts.size());
  return choices * (d + d / 32 + f32_bytes + 2 * inner * bf16_bytes + inner + inner / 32);
}

/// Of an indexer: scores of one row, its keys by page and its best blocks, and what has been found
/// for each row of a step.
std::uint64_t working_of_indexer(const model::index_shard& shard, const model::model_config& config,
                                 std::uint64_t rows, const memory_load& load) {
  const std::uint64_t here = shard.count(load.positions);
  const std::uint64_t found = std::uint64_t{config.index_topk} + config.candidate_blocks;
  constexpr std::uint64_t scored_bytes = 8;
  return here * (2 * bf16_bytes + sizeof(void*)) + rows * found * scored_bytes;
}

std::uint64_t activations_of(const unit_role& role, const plan& planned, const memory_load& load) {
  const model::model_config& config = planned.model();
  const std::uint64_t rows = planned.limits().rows_per_step;
  if (const auto* stage = std::get_if<stage_role>(&role))
    return rows * (layer_row_bytes(config, load) + joined_row_bytes(*stage, config));
  if (std::holds_alternative<head_role>(role))
    return rows * (config.vocabulary * f32_bytes + config.width * f32_bytes);
  if (std::holds_alternative<vision_role>(role)) return vision_working_bytes(planned);
  if (const auto* experts = std::get_if<experts_role>(&role))
    return working_of_experts(experts->slice, config, rows);
  if (const auto* indexer = std::get_if<indexer_role>(&role))
    return working_of_indexer(indexer->shard, config, rows, load);
  if (const auto* drafter = std::get_if<drafter_role>(&role))
    return load.requests * tapped_rows_max(config) * (drafter->target_layers.size() + 2) *
               config.width * f32_bytes +
           load.requests * config.dspark.block_size *
               (layer_row_bytes(config, load) + config.vocabulary * f32_bytes);
  return 0;
}

/// Messages of the largest step before they leave; one that goes to several units counts once.
std::uint64_t staged_at(const plan& planned, unit_id unit) {
  std::uint64_t bytes = 0;
  std::vector<std::tuple<edge_kind, std::uint32_t, std::uint32_t>> counted;
  for (const edge_id id : planned.edges_out_of(unit)) {
    const edge_plan& edge = planned[id];
    const std::tuple what{edge.kind, edge.layer, edge.slice};
    if (edge.kind == edge_kind::tap || std::ranges::find(counted, what) != counted.end()) continue;
    counted.push_back(what);
    bytes += edge.message_bytes_max;
  }
  return bytes;
}

}  // namespace

memory_need& memory_need::operator+=(const memory_need& other) noexcept {
  weights += other.weights;
  kv += other.kv;
  working += other.working;
  credit += other.credit;
  return *this;
}

memory_load largest_load(const plan& planned) noexcept {
  return {planned.limits().requests, planned.limits().context};
}

std::uint64_t global_bytes(const plan& planned, std::uint32_t ratio, bool entries, bool keys,
                           const memory_load& load) {
  const model::model_config& config = planned.model();
  const std::uint64_t bytes =
      (entries ? kernels::entry_bytes(model::global_entry_format, config.head_dim) : 0) +
      (keys ? kernels::entry_bytes(model::index_entry_format, config.index_head_dim) : 0);
  const std::uint64_t page_entries = memory::default_page_entries;
  const std::uint64_t of_load =
      load.requests * ((load.positions / ratio + page_entries - 1) / page_entries) +
      planned.limits().prefix_granules * (planned.limits().kv_granule / page_entries / ratio);
  // What the budget of all requests together allows.
  const std::uint64_t allowed =
      planned.limits().kv_granules * (planned.limits().kv_granule / page_entries / ratio);
  return std::min(of_load, allowed) * page_entries * bytes;
}

std::vector<memory_need> memory_of_units(const plan& planned, const memory_load& load) {
  const model::model_config& config = planned.model();
  const memory_load capped{load.requests, std::min(load.positions, planned.limits().context)};
  std::vector<memory_need> needs(planned.units().size());
  for (const model::expected_tensor& tensor : model::manifest(config))
    for (const unit_id reader : readers_of(planned, tensor))
      needs[reader.value].weights += part_of(planned[reader], tensor).bytes();
  for (const unit_plan& unit : planned.units()) {
    memory_need& need = needs[unit.id.value];
    if (const auto* stage = std::get_if<stage_role>(&unit.role))
      need.kv = kv_of(*stage, planned, capped);
    if (const auto* indexer = std::get_if<indexer_role>(&unit.role))
      need.kv = kv_of_indexer(indexer->shard, planned, capped);
    if (std::holds_alternative<drafter_role>(unit.role)) need.kv = kv_of_drafter(config, capped);
    if (std::holds_alternative<vision_role>(unit.role)) need.kv = kv_of_vision(planned, capped);
    need.working = activations_of(unit.role, planned, capped) + staged_at(planned, unit.id);
    for (const edge_id edge : planned.edges_into(unit.id))
      need.credit += planned[edge].window_bytes;
  }
  return needs;
}

std::vector<memory_need> memory_of_devices(const plan& planned, const memory_load& load) {
  const std::vector<memory_need> units = memory_of_units(planned, load);
  std::vector<memory_need> needs(planned.devices().size());
  for (const unit_plan& unit : planned.units())
    if (unit.device) needs[unit.device->value] += units[unit.id.value];
  return needs;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, units[unit]);
}

}  // namespace cedar::topology
