#include <nlohmann/json.hpp>

#include "topology/plan/link_costs.hpp"
#include "topology/plan/render.hpp"

namespace cedar::topology {

namespace {

using nlohmann::ordered_json;

constexpr int layout_version = 1;

/// Milliseconds, or null where no link is declared.
ordered_json time_json(const std::optional<std::chrono::nanoseconds>& taken) {
  if (!taken) return nullptr;
  return std::chrono::duration<double, std::milli>(*taken).count();
}

ordered_json memory_json(const memory_need& need) {
  return {{"weights", need.weights},
          {"kv", need.kv},
          {"working", need.working},
          {"credit", need.credit},
          {"total", need.total()}};
}

ordered_json nodes_json(const plan& planned) {
  ordered_json nodes = ordered_json::array();
  for (const node_plan& node : planned.nodes()) {
    ordered_json units = ordered_json::array();
    for (const unit_id unit : node.units) units.push_back(planned[unit].name);
    nodes.push_back({{"name", node.name},
                     {"address", node.address},
                     {"start", node.start == node_start::join ? "join" : "spawn"},
                     {"client", node.id == planned.client().id},
                     {"model", node.model_path.string()},
                     {"units", std::move(units)}});
  }
  return nodes;
}

ordered_json devices_json(const plan& planned, const cost_basis& basis) {
  const auto needs = memory_of_devices(planned, basis.load);
  ordered_json devices = ordered_json::array();
  for (const device_plan& device : planned.devices()) {
    devices.push_back(
        {{"name", device.name},
         {"node", planned[device.node].name},
         {"kind", to_string(device.kind)},
         {"index", device.kind == device_kind::cuda ? ordered_json(device.index) : ordered_json()},
         {"threads", device.threads},
         {"cores", device.cores},
         {"numa", device.numa ? ordered_json(*device.numa) : ordered_json()},
         {"nice", device.nice},
         {"has", device.memory ? ordered_json(*device.memory) : ordered_json()},
         {"needs", memory_json(needs[device.id.value])}});
  }
  return devices;
}

ordered_json tables_json(const engram_role& engram) {
  ordered_json out = {{"tables_of_layers", ordered_json::array()}};
  for (const model::engram_shard& shard : engram.shards)
    out["tables_of_layers"].push_back(shard.layer);
  if (const auto& shard = engram.shards.front(); engram.in_parts)
    out["rows"] = {shard.first_row, shard.end_row - 1};
  return out;
}

ordered_json units_json(const plan& planned, const cost_basis& basis) {
  const auto needs = memory_of_units(planned, basis.load);
  ordered_json units = ordered_json::array();
  for (const unit_plan& unit : planned.units()) {
    ordered_json entry = {
        {"name", unit.name},
        {"node", planned[unit.node].name},
        {"device", unit.device ? ordered_json(planned[*unit.device].name) : ordered_json()}};
    if (const auto* stage = std::get_if<stage_role>(&unit.role))
      entry["layers"] = {stage->layers.first, stage->layers.last};
    if (const auto* experts = std::get_if<experts_role>(&unit.role)) {
      entry["layers"] = {experts->slice.first_layer, experts->slice.last_layer};
      entry["experts"] = experts->slice.experts;
    }
    if (const auto* indexer = std::get_if<indexer_role>(&unit.role)) {
      entry["index_keys_of_layer"] = indexer->shard.owner;
      entry["part"] = indexer->shard.part + 1;
      entry["parts"] = indexer->shard.parts;
    }
    if (const auto* engram = std::get_if<engram_role>(&unit.role))
      entry.update(tables_json(*engram));
    if (const auto* drafter = std::get_if<drafter_role>(&unit.role))
      entry["taps_of_layers"] = drafter->target_layers;
    entry["needs"] = memory_json(needs[unit.id.value]);
    units.push_back(std::move(entry));
  }
  return units;
}

ordered_json size_json(const message_size& size) {
  return {{"request", size.per_request},
          {"row", size.per_row},
          {"decoder_row", size.per_decoder_row},
          {"wanted_row", size.per_wanted},
          {"earlier_id", size.per_earlier_id},
          {"entry", size.per_entry},
          {"selected", size.per_selected},
          {"tapped_row", size.per_tapped_row},
          {"order", size.per_order},
          {"drafted_token", size.per_drafted_token},
          {"image_row", size.per_image_row},
          {"routed_row", size.per_routed_row},
          {"choice", size.per_choice},
          {"asking_row", size.per_asking_row},
          {"table_row", size.per_table_row}};
}

ordered_json edges_json(const plan& planned, const cost_basis& basis) {
  ordered_json edges = ordered_json::array();
  for (const edge_plan& edge : planned.edges()) {
    const edge_cost cost = cost_of(planned, edge.id, basis);
    edges.push_back(
        {{"id", edge.id.value},
         {"name", edge.name},
         {"kind", to_string(edge.kind)},
         {"from", planned[edge.producer].name},
         {"to", planned[edge.consumer].name},
         {"layer", edge.layer},
         {"reader", edge.reader},
         {"slice", edge.slice},
         {"groups", edge.groups},
         {"between_nodes", edge.crosses()},
         {"bytes_per", size_json(edge.size)},
         {"decode_row", cost.decode_row},
         {"decode_step", cost.decode_step},
         {"full_step", cost.largest_step},
         {"decode_step_ms", time_json(time_on_link(planned, edge.id, step_kind::decode, basis))},
         {"full_step_ms", time_json(time_on_link(planned, edge.id, step_kind::full, basis))},
         {"second", cost.per_second},
         {"message_max", edge.message_bytes_max},
         {"credit_messages", edge.window_messages},
         {"credit_bytes", edge.window_bytes}});
  }
  return edges;
}

ordered_json links_json(const plan& planned, const cost_basis& basis) {
  ordered_json links = ordered_json::array();
  for (const link_cost& link : link_costs_of(planned, basis)) {
    const link_shape shape = link.shape.value_or(link_shape{});
    const bool limited = shape.bytes_per_second > 0;
    links.push_back(
        {{"from", planned[link.from].name},
         {"to", planned[link.to].name},
         {"declared", link.shape.has_value()},
         {"latency_ms", time_json(shape.latency)},
         {"jitter_ms", time_json(shape.jitter)},
         {"bandwidth_mbps", limited ? ordered_json(shape.bytes_per_second * 8 / 1e6) : nullptr},
         {"loss", shape.loss},
         {"decode_step", link.decode_step},
         {"full_step", link.full_step},
         {"decode_step_ms", time_json(link.decode_time)},
         {"full_step_ms", time_json(link.full_time)},
         {"second", link.per_second},
         {"busy", link.busy}});
  }
  return links;
}

ordered_json path_json(const plan& planned, step_kind step, const cost_basis& basis) {
  const link_path path = longest_link_path(planned, step, basis);
  ordered_json edges = ordered_json::array();
  for (const edge_id edge : path.edges) edges.push_back(edge.value);
  return {{"ms", time_json(path.time)}, {"edges", std::move(edges)}};
}

ordered_json splits_json(const plan& planned, const cost_basis& basis) {
  ordered_json splits = ordered_json::array();
  for (const split_cost& split : splits_of(planned, basis)) {
    ordered_json readers = ordered_json::array();
    for (const unit_id reader : split.readers) readers.push_back(planned[reader].name);
    splits.push_back({{"owner", split.owner},
                      {"mode", split.gather ? "gather" : "mirror"},
                      {"readers", std::move(readers)},
                      {"mirror_row", split.mirror_row},
                      {"gather_row", split.gather_row},
                      {"mirror_memory", split.mirror_memory}});
  }
  return splits;
}

}  // namespace

std::string render_json(const plan& planned, const cost_basis& basis) {
  const limits_plan& limits = planned.limits();
  const ordered_json root = {{"cedar_plan", layout_version},
                             {"file", planned.file()},
                             {"load",
                              {{"requests", basis.load.requests},
                               {"positions", basis.load.positions},
                               {"steps_per_second", basis.steps_per_second}}},
                             {"limits",
                              {{"rows_per_step", limits.rows_per_step},
                               {"requests", limits.requests},
                               {"context", limits.context},
                               {"steps_in_flight", limits.steps_in_flight},
                               {"draft_tokens", limits.draft_tokens},
                               {"draft_policy", limits.draft_policy}}},
                             {"transport", to_string(planned.transport().kind)},
                             {"nodes", nodes_json(planned)},
                             {"devices", devices_json(planned, basis)},
                             {"units", units_json(planned, basis)},
                             {"edges", edges_json(planned, basis)},
                             {"splits", splits_json(planned, basis)},
                             {"links", links_json(planned, basis)},
                             {"on_links",
                              {{"decode_step", path_json(planned, step_kind::decode, basis)},
                               {"full_step", path_json(planned, step_kind::full, basis)}}}};
  // Paths may hold any bytes.
  return root.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace cedar::topology
