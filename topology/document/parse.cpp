// The keys of a topology file: which exist, which are required, what they may hold.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "topology/document/document.hpp"
#include "topology/document/internal/second_document.hpp"
#include "topology/document/internal/yaml_section.hpp"

namespace cedar::topology {

namespace {

using internal::mistakes;
using internal::position_of;
using internal::section;

constexpr std::uint32_t format_version = 1;
// Bounds of what a file may ask for; they only keep typing errors out. What the model and the
// machine allow is checked against the plan.
constexpr std::uint32_t rows_max = 65536;
constexpr std::uint32_t requests_max = 65536;
constexpr std::uint32_t context_max = 1U << 24U;
constexpr std::uint32_t steps_max = 64;
constexpr std::uint32_t layer_max = 99999;
constexpr std::uint32_t expert_max = 65535;
constexpr std::uint32_t device_threads_max = 256;
constexpr std::uint32_t core_max = 1023;  // as many as the system's calls take
constexpr std::uint32_t numa_max = 1023;
constexpr std::uint32_t nice_max = 19;
constexpr std::uint32_t cuda_index_max = 255;
constexpr double link_ms_max = 10'000;
// 1 kbit/s to 10 Tbit/s.
constexpr double link_mbps_min = 0.001;
constexpr double link_mbps_max = 10'000'000;
constexpr std::uint32_t day_ms = 24 * 60 * 60 * 1000;

void parse_version(section& root, mistakes& out) {
  located<std::uint32_t> version;
  if (!root.require("cedar", "cedar: 1 (the version of this format)")) return;
  const bool readable = root.number("cedar", 0, std::numeric_limits<std::uint32_t>::max(), version);
  if (readable && version.value != format_version) {
    out.report(version.where, "format version " + std::to_string(version.value) + " is unknown",
               "this program reads version " + std::to_string(format_version));
  }
}

void parse_model(section& root, document& result, mistakes& out) {
  section model(root.find("model"), root.where(), "model", out);
  result.model_path.where = model.where();
  model.text("path", result.model_path);
  model.finish();
}

void parse_nodes(section& root, document& result, mistakes& out) {
  const auto found = root.require("nodes", "nodes: {NAME: {address: 127.0.0.1}}");
  section nodes(found, root.where(), "nodes", out);
  for (const auto& [name, value] : nodes.named_entries("node")) {
    section body(value, "nodes." + name.value, out);
    node_entry node;
    node.name = name;
    node.address.where = name.where;
    body.text("address", node.address);
    body.text("model_path", node.model_path);
    node.start.where = name.where;
    body.text("start", node.start);
    body.finish();
    result.nodes.push_back(std::move(node));
  }
  if (found && nodes.usable() && nodes.empty()) {
    out.report(nodes.where(), "'nodes' names no node", "write nodes: {NAME: {address: 127.0.0.1}}");
  }
}

void parse_devices(section& root, document& result, mistakes& out) {
  const auto found = root.require("devices", "devices: {NAME: {node: NODE, kind: cpu}}");
  section devices(found, root.where(), "devices", out);
  for (const auto& [name, value] : devices.named_entries("device")) {
    section body(value, "devices." + name.value, out);
    device_entry device;
    device.name = name;
    device.kind.where = name.where;
    device.threads.where = name.where;
    if (body.require("node", "node: NODE, the process that owns the device")) {
      body.text("node", device.node);
    }
    body.text("kind", device.kind);
    if (body.numbers("cores", core_max, device.cores)) {
      device.threads.value = static_cast<std::uint32_t>(
          std::min<std::size_t>(device.cores.value.size(), device_threads_max));
    }
    body.number("threads", 1, device_threads_max, device.threads);
    body.number("numa", 0, numa_max, device.numa);
    device.nice.where = name.where;
    body.number("nice", 0, nice_max, device.nice);
    body.bytes("memory", device.memory);
    device.index.where = name.where;
    body.number("index", 0, cuda_index_max, device.index);
    body.finish();
    result.devices.push_back(std::move(device));
  }
  if (found && devices.usable() && devices.empty()) {
    out.report(devices.where(), "'devices' names no device",
               "write devices: {NAME: {node: NODE, kind: cpu}}");
  }
}

void parse_device_unit(const YAML::Node& value, const std::string& path, device_unit_entry& unit,
                       mistakes& out) {
  section body(value, path, out);
  unit.where = body.where();
  if (body.require("device", "device: DEVICE")) body.text("device", unit.device);
  body.finish();
}

void parse_stages(section& units, units_entry& result, mistakes& out) {
  const std::string example = "stages:, a list of {name: NAME, layers: FIRST-LAST, device: DEVICE}";
  const auto found = units.require("stages", example);
  if (!found) return;
  if (!found->IsSequence() || found->size() == 0) {
    out.report(position_of(*found),
               "'units.stages' must be a list of stages, not " +
                   (found->IsSequence() ? "an empty one" : internal::describe(*found)),
               "write " + example);
    return;
  }
  for (std::size_t index = 0; index < found->size(); ++index) {
    section body((*found)[index], "units.stages[" + std::to_string(index) + "]", out);
    stage_entry stage;
    stage.name.where = body.where();
    if (body.require("name", "name: NAME") && body.text("name", stage.name)) {
      internal::check_name(stage.name, "stage", out);
    }
    body.layers("layers", stage.layers);
    if (body.require("device", "device: DEVICE")) body.text("device", stage.device);
    body.finish();
    result.stages.push_back(std::move(stage));
  }
}

void parse_experts(section& units, units_entry& result, mistakes& out) {
  const auto found = units.find("experts");
  if (!found) return;
  if (!found->IsSequence()) {
    out.report(position_of(*found),
               "'units.experts' must be a list of slices, not " + internal::describe(*found),
               "write experts:, a list of {name: NAME, layers: FIRST-LAST, experts: FIRST-LAST, "
               "device: DEVICE}");
    return;
  }
  for (std::size_t index = 0; index < found->size(); ++index) {
    section body((*found)[index], "units.experts[" + std::to_string(index) + "]", out);
    experts_entry slice;
    slice.name.where = body.where();
    if (body.require("name", "name: NAME") && body.text("name", slice.name)) {
      internal::check_name(slice.name, "slice of experts", out);
    }
    body.layers("layers", slice.layers);
    body.numbers("experts", expert_max, slice.experts);
    if (body.require("device", "device: DEVICE")) body.text("device", slice.device);
    body.finish();
    result.experts.push_back(std::move(slice));
  }
}

void parse_indexers(section& units, units_entry& result, mistakes& out) {
  const auto found = units.find("indexers");
  if (!found) return;
  if (!found->IsSequence()) {
    out.report(position_of(*found),
               "'units.indexers' must be a list of shards, not " + internal::describe(*found),
               "write indexers:, a list of {name: NAME, owner: LAYER, device: DEVICE}");
    return;
  }
  for (std::size_t index = 0; index < found->size(); ++index) {
    section body((*found)[index], "units.indexers[" + std::to_string(index) + "]", out);
    indexer_entry shard;
    shard.name.where = shard.owner.where = body.where();
    if (body.require("name", "name: NAME") && body.text("name", shard.name)) {
      internal::check_name(shard.name, "indexer", out);
    }
    if (body.require("owner", "owner: LAYER, the layer that creates the index keys"))
      body.number("owner", 0, layer_max, shard.owner);
    if (body.require("device", "device: DEVICE")) body.text("device", shard.device);
    body.finish();
    result.indexers.push_back(std::move(shard));
  }
}

void parse_engram(const YAML::Node& value, units_entry& result, mistakes& out) {
  if (!value.IsSequence()) {
    parse_device_unit(value, "units.engram", result.engram.emplace(), out);
    return;
  }
  result.engram_shards = {{}, position_of(value), true};
  if (value.size() == 0) {
    out.report(position_of(value), "'units.engram' must name at least one shard",
               "write engram: {device: DEVICE}, or a list of {name: NAME, layer: LAYER, "
               "rows: FIRST-LAST, device: DEVICE}");
    result.engram_shards.wrong = true;
  }
  for (std::size_t index = 0; index < value.size(); ++index) {
    section body(value[index], "units.engram[" + std::to_string(index) + "]", out);
    engram_entry shard;
    shard.name.where = shard.layer.where = shard.rows.where = body.where();
    if (body.require("name", "name: NAME") && body.text("name", shard.name)) {
      internal::check_name(shard.name, "shard of a table", out);
    }
    shard.layer.wrong = true;
    if (body.require("layer", "layer: LAYER, the one after the Engram module"))
      body.number("layer", 0, layer_max, shard.layer);
    body.rows("rows", shard.rows);
    if (body.require("device", "device: DEVICE")) body.text("device", shard.device);
    body.finish();
    result.engram_shards.value.push_back(std::move(shard));
  }
}

void parse_units(section& root, document& result, mistakes& out) {
  const auto found =
      root.require("units",
                   "units: with scheduler, embedding, stages, head, and engram if the model "
                   "has Engram modules");
  if (!found) return;
  section units(*found, "units", out);
  result.units.where = units.where();
  if (const auto value = units.require("scheduler", "scheduler: {node: NODE}")) {
    section body(*value, "units.scheduler", out);
    if (body.require("node", "node: NODE")) body.text("node", result.units.scheduler_node);
    body.finish();
  }
  if (const auto value = units.find("vision")) {
    parse_device_unit(*value, "units.vision", result.units.vision.emplace(), out);
  }
  if (const auto value = units.require("embedding", "embedding: {device: DEVICE}")) {
    parse_device_unit(*value, "units.embedding", result.units.embedding, out);
  }
  if (const auto value = units.find("engram")) {
    parse_engram(*value, result.units, out);
  }
  parse_stages(units, result.units, out);
  parse_experts(units, result.units, out);
  parse_indexers(units, result.units, out);
  if (const auto value = units.require("head", "head: {device: DEVICE}")) {
    parse_device_unit(*value, "units.head", result.units.head, out);
  }
  if (const auto value = units.find("drafter")) {
    parse_device_unit(*value, "units.drafter", result.units.drafter.emplace(), out);
  }
  units.finish();
}

void parse_splits(section& root, document& result, mistakes& out) {
  const std::string example = "splits:, a list of {owner: LAYER, mode: mirror}";
  const auto found = root.find("splits");
  if (!found) return;
  if (!found->IsSequence()) {
    out.report(position_of(*found),
               "'splits' must be a list of splits, not " + internal::describe(*found),
               "write " + example);
    return;
  }
  for (std::size_t index = 0; index < found->size(); ++index) {
    section body((*found)[index], "splits[" + std::to_string(index) + "]", out);
    split_entry split;
    split.owner.where = split.mode.where = body.where();
    if (body.require("owner", "owner: LAYER, the layer that creates the global KV"))
      body.number("owner", 0, layer_max, split.owner);
    if (body.require("mode", "mode: mirror, or mode: gather")) body.text("mode", split.mode);
    body.finish();
    result.splits.push_back(std::move(split));
  }
}

/// Where a link leads: `between: [A, B]`, or `from: A` and `to: B`.
void parse_link_ends(section& body, const std::string& path, link_entry& link, mistakes& out) {
  const auto between = body.find("between");
  const bool from = body.find("from").has_value();
  const bool to = body.find("to").has_value();
  link.both_ways = between.has_value();
  if (between ? from || to : !(from && to)) {
    out.report(body.where(),
               "'" + path + "' must say where it leads, by 'between' or by 'from' and 'to'",
               "write between: [NODE, NODE] for both directions, from: NODE, to: NODE for one");
    return;
  }
  if (!between) {
    body.text("from", link.from);
    body.text("to", link.to);
    return;
  }
  std::vector<located<std::string>> ends;
  body.texts("between", ends);
  if (between->IsSequence() && between->size() > 0 && between->size() != 2) {
    out.report(position_of(*between), "'" + path + ".between' must name two nodes, not " +
                                          std::to_string(between->size()));
  } else if (ends.size() == 2) {
    link.from = ends[0];
    link.to = ends[1];
  }
}

void parse_links(section& root, document& result, mistakes& out) {
  const auto found = root.find("links");
  if (!found) return;
  if (!found->IsSequence()) {
    out.report(position_of(*found),
               "'links' must be a list of links, not " + internal::describe(*found),
               "write links:, a list of {between: [NODE, NODE], latency_ms: 20}");
    return;
  }
  for (std::size_t index = 0; index < found->size(); ++index) {
    const std::string path = "links[" + std::to_string(index) + "]";
    section body((*found)[index], path, out);
    if (!body.usable()) continue;
    link_entry link;
    link.where = body.where();
    parse_link_ends(body, path, link, out);
    body.decimal("latency_ms", 0, link_ms_max, link.latency_ms);
    body.decimal("jitter_ms", 0, link_ms_max, link.jitter_ms);
    body.decimal("bandwidth_mbps", link_mbps_min, link_mbps_max, link.bandwidth_mbps);
    body.decimal("loss", 0, 1, link.loss);
    body.finish();
    result.links.push_back(std::move(link));
  }
}

void place_default(position where, located<std::uint32_t>& value) {
  if (!value.given) value.where = where;
}

void parse_limits(section& root, limits_entry& limits, mistakes& out) {
  section body(root.find("limits"), root.where(), "limits", out);
  body.number("rows_per_step", 1, rows_max, limits.rows_per_step);
  body.number("requests", 1, requests_max, limits.requests);
  body.number("context", 1, context_max, limits.context);
  body.number("steps_in_flight", 1, steps_max, limits.steps_in_flight);
  body.number("prefill_rows", 1, rows_max, limits.prefill_rows);
  body.number("kv_positions", 1, std::numeric_limits<std::uint32_t>::max(), limits.kv_positions);
  body.number("prefix_positions", 0, std::numeric_limits<std::uint32_t>::max(),
              limits.prefix_positions);
  body.finish();
  if (!limits.prefill_rows.given) limits.prefill_rows.value = limits.rows_per_step.value;
  for (auto* value :
       {&limits.rows_per_step, &limits.requests, &limits.context, &limits.steps_in_flight,
        &limits.prefill_rows, &limits.kv_positions, &limits.prefix_positions}) {
    place_default(body.where(), *value);
  }
}

void parse_transport(section& root, transport_entry& transport, mistakes& out) {
  section body(root.find("transport"), root.where(), "transport", out);
  transport.kind.where = body.where();
  body.text("kind", transport.kind);
  body.texts("tls", transport.tls);
  body.texts("devices", transport.devices);
  body.finish();
}

void parse_deadlines(section& root, deadlines_entry& deadlines, mistakes& out) {
  section body(root.find("deadlines_ms"), root.where(), "deadlines_ms", out);
  body.number("start", 1, day_ms, deadlines.start);
  body.number("step", 1, day_ms, deadlines.step);
  body.number("heartbeat_interval", 1, day_ms, deadlines.heartbeat_interval);
  body.number("heartbeat_lost", 1, day_ms, deadlines.heartbeat_lost);
  body.number("drain", 1, day_ms, deadlines.drain);
  body.finish();
  for (auto* value : {&deadlines.start, &deadlines.step, &deadlines.heartbeat_interval,
                      &deadlines.heartbeat_lost, &deadlines.drain}) {
    place_default(body.where(), *value);
  }
}

void parse_control(section& root, control_entry& control, mistakes& out) {
  section body(root.find("control"), root.where(), "control", out);
  control.listen.where = body.where();
  body.text("listen", control.listen);
  body.finish();
}

void parse_security(section& root, security_entry& security, mistakes& out) {
  section body(root.find("security"), root.where(), "security", out);
  security.secret_file.where = security.allow_remote.where = body.where();
  body.text("secret_file", security.secret_file);
  body.flag("allow_remote", security.allow_remote);
  body.finish();
}

void parse_root(const YAML::Node& node, document& result, mistakes& out) {
  section root(node, "", out);
  if (!root.usable()) return;
  parse_version(root, out);
  parse_model(root, result, out);
  parse_nodes(root, result, out);
  parse_devices(root, result, out);
  parse_units(root, result, out);
  parse_splits(root, result, out);
  parse_links(root, result, out);
  result.strict_links.where = root.where();
  root.flag("strict_links", result.strict_links);
  result.client = result.units.scheduler_node;
  result.client.given = false;
  root.text("client", result.client);
  result.mode.where = root.where();
  root.text("mode", result.mode);
  result.draft.where = root.where();
  root.text("draft", result.draft);
  parse_limits(root, result.limits, out);
  parse_transport(root, result.transport, out);
  parse_deadlines(root, result.deadlines, out);
  parse_control(root, result.control, out);
  parse_security(root, result.security, out);
  root.finish();
}

}  // namespace

reading read_text(std::string_view text, const std::string& file) {
  document result;
  result.file = file;
  result.directory = std::filesystem::path(file).parent_path();
  mistakes out(file);
  try {
    // Not YAML::LoadAll: it does not end on a stray ','.
    const std::string copy(text);
    const auto second = internal::find_second_document(copy);
    const YAML::Node root = YAML::Load(copy);
    if (second && second->stray_token) {
      out.report(second->where, "this is not YAML: nothing can begin like this");
    } else if (second) {
      out.report(second->where, "the file holds a second document",
                 "one file describes one topology: remove the '---'");
    } else if (root.IsNull()) {
      out.report({}, "the file is empty", "configs/topologies/README.md shows what to write");
    } else {
      parse_root(root, result, out);
    }
  } catch (const YAML::Exception& problem) {
    const bool placed = !problem.mark.is_null();
    const position where = placed ? position{static_cast<std::uint32_t>(problem.mark.line) + 1,
                                             static_cast<std::uint32_t>(problem.mark.column) + 1}
                                  : position{};
    out.report(where, "this is not YAML: " + printable(problem.msg));
  }
  return {std::move(result), out.take()};
}

}  // namespace cedar::topology
