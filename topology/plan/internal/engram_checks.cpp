#include "topology/plan/internal/engram_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/model/engram_hash.hpp"
#include "topology/plan/internal/texts.hpp"

namespace cedar::topology::internal {

namespace {

struct checked_shard {
  const engram_entry* entry;
  model::engram_shard rows;
};

/// Of the table of the module before `layer`; none if there is no such module.
std::optional<std::uint64_t> rows_of_table(const model::model_config& config, std::uint32_t layer) {
  const auto& layers = config.engram.layers;
  const auto found = std::ranges::find(layers, layer);
  if (found == layers.end()) return std::nullopt;
  return config.engram.rows[static_cast<std::size_t>(found - layers.begin())];
}

std::string hint_of_table(std::uint32_t layer, std::uint64_t rows) {
  return fmt::format("the table of layer {} has rows 0-{}", layer, rows - 1);
}

void check_presence(const document& topology, const model::model_config& config,
                    std::vector<diagnostic>& out) {
  const units_entry& units = topology.units;
  const bool placed = units.engram || units.engram_shards.given;
  // Without stages there are no units that could be read.
  if (!config.engram.layers.empty() && !placed && !units.stages.empty()) {
    out.push_back(topology.mistake(units.where,
                                   "'units.engram' is missing: the model has Engram modules",
                                   "write engram: {device: DEVICE}"));
  }
  if (config.engram.layers.empty() && placed) {
    out.push_back(topology.mistake(units.engram ? units.engram->where : units.engram_shards.where,
                                   "the model has no Engram modules for 'units.engram' to hold",
                                   "remove it"));
  }
}

/// Its rows, if the model has them.
std::optional<model::engram_shard> check_shard(const document& topology, const engram_entry& entry,
                                               const model::model_config& config,
                                               std::vector<diagnostic>& out) {
  const std::uint32_t layer = entry.layer.value;
  const auto rows = rows_of_table(config, layer);
  if (!rows) {
    out.push_back(topology.mistake(
        entry.layer.where,
        fmt::format("there is no Engram module before layer {} for shard '{}' to hold", layer,
                    entry.name.value),
        fmt::format("the model has modules before layers {}",
                    fmt::join(config.engram.layers, ", "))));
    return std::nullopt;
  }
  const row_range& named = entry.rows.value;
  const std::uint64_t last = named.last.value_or(std::max(named.first, *rows - 1));
  if (last >= *rows) {
    const std::uint64_t first = std::max(named.first, *rows);
    out.push_back(
        topology.mistake(entry.rows.where,
                         fmt::format("{} of shard '{}' {} not exist", rows_text(first, last),
                                     entry.name.value, first == last ? "does" : "do"),
                         hint_of_table(layer, *rows)));
    return std::nullopt;
  }
  return shard_of(entry, config, 0);
}

/// `shards`: of one table, ascending by their first rows.
void check_cover(const document& topology, const std::vector<checked_shard>& shards,
                 std::uint32_t layer, std::uint64_t rows, std::vector<diagnostic>& out) {
  const std::string hint = hint_of_table(layer, rows) + ": each is on one shard";
  const auto lacking = [&](std::uint64_t first, std::uint64_t end, position where) {
    if (first >= end) return;
    out.push_back(topology.mistake(
        where,
        fmt::format("{} of the table of layer {} {} on no shard", rows_text(first, end - 1), layer,
                    end - first == 1 ? "is" : "are"),
        hint));
  };
  std::uint64_t next = 0;
  const checked_shard* reaches_it = nullptr;  // the one that ends at `next`
  for (const checked_shard& shard : shards) {
    lacking(next, shard.rows.first_row, shard.entry->rows.where);
    if (shard.rows.first_row < next) {
      const std::uint64_t last = std::min(next, shard.rows.end_row) - 1;
      out.push_back(topology.mistake(
          shard.entry->rows.where,
          fmt::format("{} of the table of layer {} on shard '{}' {} on shard '{}' too",
                      rows_text(shard.rows.first_row, last), layer, shard.entry->name.value,
                      last == shard.rows.first_row ? "is" : "are", reaches_it->entry->name.value),
          hint));
    }
    if (shard.rows.end_row <= next) continue;
    next = shard.rows.end_row;
    reaches_it = &shard;
  }
  lacking(
      next, rows,
      reaches_it != nullptr ? reaches_it->entry->rows.where : topology.units.engram_shards.where);
}

}  // namespace

model::engram_shard shard_of(const engram_entry& entry, const model::model_config& config,
                             std::uint32_t number) {
  const row_range& rows = entry.rows.value;
  const std::uint64_t end =
      rows.last ? *rows.last + 1 : rows_of_table(config, entry.layer.value).value_or(0);
  return {number, entry.layer.value, rows.first, end};
}

void check_engram(const document& topology, const model::model_config& config,
                  std::vector<diagnostic>& out) {
  check_presence(topology, config, out);
  const auto& entries = topology.units.engram_shards;
  if (!entries.given || entries.wrong || config.engram.layers.empty()) return;
  if (const auto tables = model::make_engram_tables(config); !tables) {
    out.push_back(topology.mistake(entries.where, tables.error().message));
    return;
  }
  bool all_sound = true;
  std::vector<checked_shard> shards;
  for (const engram_entry& entry : entries.value) {
    const bool readable = !entry.layer.wrong && !entry.rows.wrong;
    const auto rows = readable ? check_shard(topology, entry, config, out) : std::nullopt;
    if (rows) shards.push_back({&entry, *rows});
    all_sound = all_sound && rows.has_value();
  }
  // What is wrong may have been meant for what is lacking.
  if (!all_sound) return;
  std::ranges::stable_sort(shards, {},
                           [](const checked_shard& shard) { return shard.rows.first_row; });
  for (const std::uint32_t layer : config.engram.layers) {
    std::vector<checked_shard> of_table;
    std::ranges::copy_if(shards, std::back_inserter(of_table),
                         [&](const checked_shard& shard) { return shard.rows.layer == layer; });
    check_cover(topology, of_table, layer, *rows_of_table(config, layer), out);
  }
}

}  // namespace cedar::topology::internal
