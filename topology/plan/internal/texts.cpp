#include "topology/plan/internal/texts.hpp"

#include <fmt/format.h>

#include <cmath>

namespace cedar::topology::internal {

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string grouped(double number) {
  const auto tenths = static_cast<std::uint64_t>(std::llround(number * 10));
  const std::string whole = grouped(tenths / 10);
  return tenths % 10 == 0 ? whole : whole + "." + std::to_string(tenths % 10);
}

std::string milliseconds(std::chrono::nanoseconds time) {
  const double ms = std::chrono::duration<double, std::milli>(time).count();
  const auto thousandths = static_cast<std::uint64_t>(std::llround(ms * 1000));
  return fmt::format("{}.{:03}", grouped(thousandths / 1000), thousandths % 1000);
}

std::string layers_text(layer_range range) {
  return range.first == range.last ? fmt::format("layer {}", range.first)
                                   : fmt::format("layers {}-{}", range.first, range.last);
}

std::string ranges_text(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t first = 0, end = 0; first < numbers.size(); first = end) {
    end = first + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[first]);
    if (end - first > 1) text += fmt::format("-{}", numbers[end - 1]);
  }
  return text;
}

std::string experts_text(const std::vector<std::uint32_t>& experts) {
  return (experts.size() == 1 ? "expert " : "experts ") + ranges_text(experts);
}

std::string rows_text(std::uint64_t first, std::uint64_t last) {
  return first == last ? fmt::format("row {}", first) : fmt::format("rows {}-{}", first, last);
}

namespace {

std::string tables_text(const engram_role& engram) {
  if (const auto& shard = engram.shards.front(); engram.in_parts)
    return rows_text(shard.first_row, shard.end_row - 1) +
           fmt::format(" of the table of layer {}", shard.layer);
  std::string layers;
  for (const model::engram_shard& table : engram.shards)
    layers += fmt::format("{}{}", layers.empty() ? "" : ", ", table.layer);
  return "tables of layers " + layers;
}

}  // namespace

std::string holds(const unit_plan& unit) {
  if (const auto* stage = std::get_if<stage_role>(&unit.role)) return layers_text(stage->layers);
  if (const auto* engram = std::get_if<engram_role>(&unit.role)) {
    return tables_text(*engram);
  }
  if (const auto* experts = std::get_if<experts_role>(&unit.role)) {
    const model::expert_slice& slice = experts->slice;
    return experts_text(slice.experts) + " of " +
           layers_text(layer_range{slice.first_layer, slice.last_layer});
  }
  if (const auto* indexer = std::get_if<indexer_role>(&unit.role)) {
    const model::index_shard& shard = indexer->shard;
    return fmt::format("index keys of layer {}, part {} of {}", shard.owner, shard.part + 1,
                       shard.parts);
  }
  if (const auto* drafter = std::get_if<drafter_role>(&unit.role)) {
    return fmt::format("taps of layers {}", fmt::join(drafter->target_layers, ", "));
  }
  return "";
}

}  // namespace cedar::topology::internal
