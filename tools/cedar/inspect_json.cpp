#include <nlohmann/json.hpp>
#include <ostream>

#include "tools/cedar/inspect_placement.hpp"
#include "tools/cedar/inspect_summary.hpp"

namespace cedar::tools {
namespace {

using nlohmann::ordered_json;

ordered_json cache_json(const inspection& what) {
  const stage::cache_size& size = what.cache;
  return {{"positions", what.cache_positions}, {"pages", size.pages},
          {"page_bytes", size.page_bytes},     {"global_bytes", size.global_bytes()},
          {"window_bytes", size.window_bytes}, {"pending_bytes", size.pending_bytes},
          {"draft_bytes", size.draft_bytes},   {"tap_bytes", size.tap_bytes}};
}

ordered_json size_json(const tensor_sums& sums) {
  return {{"tensors", sums.tensors}, {"parameters", sums.parameters}, {"bytes", sums.bytes}};
}

ordered_json part_json(const part_total& part) {
  ordered_json out = size_json(part.sums);
  if (part.published > 0) out["parameters_published"] = part.published;
  return out;
}

ordered_json number_or_null(const std::optional<std::uint32_t>& number) {
  return number ? ordered_json(*number) : ordered_json(nullptr);
}

ordered_json schedule_json(const model::model_config& c, const summary& s) {
  ordered_json layers = ordered_json::array();
  for (std::uint32_t layer = 0; layer < c.layers; ++layer) {
    const model::layer_schedule& l = s.plan[layer];
    layers.push_back({{"layer", layer},
                      {"mode", to_string(l.mode)},
                      {"ratio", l.ratio},
                      {"owner", number_or_null(l.owner)},
                      {"index_source", number_or_null(l.index_source)},
                      {"makes_candidates", l.makes_candidates},
                      {"uses_candidates", l.uses_candidates},
                      {"engram", number_or_null(l.engram)},
                      {"readers", s.plan.readers(layer)}});
  }
  return layers;
}

ordered_json architecture_json(const model::model_config& c, const summary& s) {
  return {{"vocabulary", c.vocabulary},
          {"width", c.width},
          {"streams", c.streams},
          {"positions", c.max_positions},
          {"layers", c.layers},
          {"decoder_begin", s.plan.decoder_begin()},
          {"heads", c.heads},
          {"head_dim", c.head_dim},
          {"rope_dim", c.rope_dim},
          {"window", c.window},
          {"index_heads", c.index_heads},
          {"index_head_dim", c.index_head_dim},
          {"index_topk", c.index_topk},
          {"experts", c.routed_experts},
          {"experts_per_token", c.experts_per_token},
          {"expert_inner", c.expert_inner},
          {"engram_layers", c.engram.layers},
          {"dspark_blocks", c.dspark.blocks},
          {"vision_layers", c.vision.layers},
          {"global_kv_bytes_per_token", s.global_bytes_per_token},
          {"window_kv_bytes_per_sequence", s.window_bytes},
          {"free_cuts_after", s.free_cuts}};
}

ordered_json weights_json(const weights_inspection& weights) {
  const model::manifest_check& d = weights.differences;
  return {{"files", weights.files}, {"files_absent", weights.files_absent},
          {"matches", d.ok()},      {"missing", d.missing},
          {"extra", d.extra},       {"misshaped", d.misshaped},
          {"mistyped", d.mistyped}, {"fingerprint", weights.fingerprint}};
}

ordered_json unit_names(const placement_inspection& placed,
                        const std::vector<topology::unit_id>& units) {
  ordered_json names = ordered_json::array();
  for (const topology::unit_id unit : units) names.push_back(placed.plan[unit].name);
  return names;
}

ordered_json placement_json(const placement_inspection& placed) {
  ordered_json root = {{"file", placed.plan.file()}, {"units", ordered_json::array()}};
  for (const topology::unit_plan& unit : placed.plan.units()) {
    if (!unit.device) continue;
    ordered_json one = {{"unit", unit.name},
                        {"device", placed.plan[*unit.device].name},
                        {"node", placed.plan[unit.node].name}};
    one.update(size_json(placed.by_unit[unit.id.value]));
    root["units"].push_back(std::move(one));
  }
  root["on_one_unit"] = size_json(placed.once);
  root["replicas"] = ordered_json::array();
  for (const replicated_tensors& group : placed.replicas)
    root["replicas"].push_back({{"tensors", group.names},
                                {"units", unit_names(placed, group.readers)},
                                {"bytes", group.sums.bytes}});
  root["not_placed"] = ordered_json::object();
  for (const model::component_total& total : placed.not_placed)
    root["not_placed"][std::string(to_string(total.part))] = size_json(sums_of(total));
  return root;
}

ordered_json tensors_json(const inspection& what) {
  ordered_json rows = ordered_json::array();
  for (std::size_t i = 0; i < what.tensors.size(); ++i) {
    const model::expected_tensor& tensor = what.tensors[i];
    ordered_json row = {{"name", tensor.name},
                        {"dtype", to_string(tensor.dtype)},
                        {"shape", tensor.shape},
                        {"bytes", tensor.bytes()},
                        {"parameters", tensor.parameters()},
                        {"component", to_string(tensor.part)}};
    if (what.placed) row["units"] = unit_names(*what.placed, what.placed->readers[i]);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

void print_json(const inspection& what, std::ostream& out) {
  const summary s(what);
  ordered_json root = {{"path", what.path.string()},
                       {"architecture", architecture_json(what.config, s)},
                       {"schedule", schedule_json(what.config, s)}};
  for (const model::component_total& total : s.totals)
    root["components"][std::string(to_string(total.part))] = size_json(sums_of(total));
  for (const part_total& part : s.parts) root["parts"][part.name] = part_json(part);
  root["total"] = size_json(s.all);
  if (what.cache_positions > 0) root["cache"] = cache_json(what);
  root["weights"] = what.weights ? weights_json(*what.weights) : ordered_json(nullptr);
  root["warnings"] = what.warnings;
  if (what.placed) root["placement"] = placement_json(*what.placed);
  if (what.list_tensors) root["tensors"] = tensors_json(what);
  // A list of a hundred thousand is for programs: on one line.
  out << root.dump(what.list_tensors ? -1 : 2) << '\n';
}

}  // namespace cedar::tools
