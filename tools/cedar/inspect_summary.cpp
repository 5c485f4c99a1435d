#include "tools/cedar/inspect_summary.hpp"

#include <algorithm>

namespace cedar::tools {
namespace {

std::string_view part_of(model::component part) {
  switch (part) {
    case model::component::engram_table:
      return "engram tables";
    case model::component::dspark:
      return "dspark";
    case model::component::vision:
      return "vision";
    default:
      return "backbone";
  }
}

/// The sizes that the figures of DeepSeek-V4.1-Flash were published for.
bool is_released(const model::model_config& c) {
  return c.layers == 40 && c.width == 5120 && c.vocabulary == 129280 && c.routed_experts == 384 &&
         c.expert_inner == 2304 &&
         c.engram.rows == std::vector<std::uint64_t>{384006168, 384016682};
}

/// Parameters, as published with the release.
std::uint64_t published(std::string_view part) {
  if (part == "backbone") return 552'000'000'000;
  return part == "engram tables" ? 196'000'000'000 : 0;
}

}  // namespace

summary::summary(const inspection& what) : plan(what.config), totals(model::totals(what.tensors)) {
  const model::model_config& c = what.config;
  for (const model::component_total& total : totals) {
    const std::string_view name = part_of(total.part);
    auto part = std::ranges::find(parts, name, &part_total::name);
    if (part == parts.end())
      part = parts.insert(part, {std::string(name), {}, is_released(c) ? published(name) : 0});
    part->sums.add(sums_of(total));
    all.add(sums_of(total));
  }
  // A packed entry: FP4 with an E4M3 scale per 16; an index key: FP4 with an E8M0 scale per 32.
  const double entry = c.head_dim / 2.0 + c.head_dim / 16.0;
  const double key = c.index_head_dim / 2.0 + c.index_head_dim / 32.0;
  for (const std::uint32_t source : c.kv_sources)
    global_bytes_per_token += (entry + key) / plan[source].ratio;
  // A window row: FP8 with an E8M0 scale per 32.
  window_bytes = std::uint64_t{c.layers} * c.window * (std::uint64_t{c.head_dim} + c.head_dim / 32);
  for (std::uint32_t layer = 0; layer + 1 < c.layers; ++layer)
    if (plan.cut_is_free(layer)) free_cuts.push_back(layer);
}

tensor_sums sums_of(const model::component_total& total) noexcept {
  return {total.tensors, total.parameters, total.bytes};
}

/// 510286023000 as "510,286,023,000".
std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

}  // namespace cedar::tools
