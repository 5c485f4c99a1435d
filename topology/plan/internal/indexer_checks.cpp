#include "topology/plan/internal/indexer_checks.hpp"

#include <algorithm>

#include "runtime/model/schedule.hpp"
#include "topology/plan/internal/layer_checks.hpp"

namespace cedar::topology::internal {

namespace {

bool makes_keys(const model::model_config& config, std::uint32_t layer) {
  return std::ranges::find(config.kv_sources, layer) != config.kv_sources.end();
}

}  // namespace

std::vector<model::index_shard> shards_of(const document& topology,
                                          const model::model_config& config) {
  const auto& entries = topology.units.indexers;
  std::vector<model::index_shard> out;
  for (const indexer_entry& entry : entries) {
    const auto of_owner = [&](const auto& other) { return other.owner == entry.owner.value; };
    const auto parts = std::ranges::count_if(entries, [&](const indexer_entry& other) {
      return other.owner.value == entry.owner.value;
    });
    out.push_back({static_cast<std::uint32_t>(out.size()), entry.owner.value,
                   static_cast<std::uint32_t>(std::ranges::count_if(out, of_owner)),
                   static_cast<std::uint32_t>(parts), model::shard_block_entries(config)});
  }
  return out;
}

void check_indexers(const document& topology, const model::model_config& config,
                    std::vector<diagnostic>& out) {
  const model::schedule schedule(config);
  const std::uint32_t context = std::min(topology.limits.context.value, config.max_positions);
  for (const model::index_shard& shard : shards_of(topology, config)) {
    const indexer_entry& entry = topology.units.indexers[shard.number];
    if (entry.owner.wrong || !entry.owner.given) continue;
    const std::string owner = std::to_string(shard.owner);
    if (!makes_keys(config, shard.owner)) {
      out.push_back(topology.mistake(
          entry.owner.where,
          "layer " + owner + " of indexer '" + entry.name.value + "' makes no index keys",
          config.kv_sources.empty() ? "remove the entry: no layer of this model does"
                                    : "the owners are " + layers_text(config.kv_sources)));
      continue;
    }
    const std::uint32_t entries = context / schedule[shard.owner].ratio;
    if (!topology.limits.context.wrong && shard.count(entries) == 0)
      out.push_back(topology.mistake(
          entry.owner.where,
          "indexer '" + entry.name.value + "' would hold nothing: " + std::to_string(context) +
              " positions make " + std::to_string(entries) + " entries at layer " + owner +
              ", in blocks of " + std::to_string(shard.block_entries),
          "remove the entry, or raise limits.context"));
  }
}

}  // namespace cedar::topology::internal
