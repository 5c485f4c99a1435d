#include "topology/plan/internal/name_checks.hpp"

#include <algorithm>
#include <set>

#include "runtime/memory/kv_page_pool.hpp"
#include "runtime/model/owner_ratios.hpp"
#include "topology/document/nearest.hpp"
#include "topology/plan/internal/address.hpp"

namespace cedar::topology::internal {

namespace {

const std::vector<std::string> device_kinds = {"cpu", "cuda", "reference"};
const std::vector<std::string> start_words = {"spawn", "join"};
const std::vector<std::string> transport_kinds = {"ucx", "loopback"};
// Transports of UCX that carry active messages on a host or between hosts (`ucx_info -d`). "cma" is
// not among them: UCX cannot use it on endpoints that report the death of a peer.
const std::vector<std::string> ucx_transports = {"self", "tcp", "posix", "sysv", "rc", "ud", "dc"};
const std::set<std::string> reserved_names = {"scheduler", "vision", "embedding",
                                              "engram",    "head",   "drafter"};

template <class Entry>
std::vector<std::string> names_of(const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name.value);
  return names;
}

template <class Entry>
std::optional<std::uint32_t> index_of(const std::vector<Entry>& entries, std::string_view name) {
  for (std::uint32_t index = 0; index < entries.size(); ++index) {
    if (entries[index].name.value == name) return index;
  }
  return std::nullopt;
}

/// Reports a name of something that does not exist; not one that the file lacks, nor any if all of
/// its kind could not be read: that has been reported.
void report_unknown(const document& topology, const located<std::string>& name,
                    const std::string& what, const std::vector<std::string>& known,
                    std::vector<diagnostic>& out) {
  if (name.value.empty() || known.empty()) return;
  out.push_back(topology.mistake(name.where, "there is no " + what + " " + in_quotes(name.value),
                                 spelling_hint(name.value, known)));
}

/// Every device that a unit names, in file order.
std::vector<const located<std::string>*> devices_of_units(const units_entry& units) {
  std::vector<const located<std::string>*> used;
  if (units.vision) used.push_back(&units.vision->device);
  used.push_back(&units.embedding.device);
  if (units.engram) used.push_back(&units.engram->device);
  for (const engram_entry& shard : units.engram_shards.value) used.push_back(&shard.device);
  for (const experts_entry& slice : units.experts) used.push_back(&slice.device);
  for (const indexer_entry& shard : units.indexers) used.push_back(&shard.device);
  for (const stage_entry& stage : units.stages) used.push_back(&stage.device);
  used.push_back(&units.head.device);
  if (units.drafter) used.push_back(&units.drafter->device);
  return used;
}

/// Of stages, shards of tables, slices of experts and indexers, which share a space of names with
/// the other units.
void check_unit_names(const document& topology, std::vector<diagnostic>& out) {
  std::set<std::string> seen;
  const auto check = [&](const located<std::string>& name, const std::string& what,
                         const std::string& all) {
    if (name.value.empty()) return;
    if (reserved_names.count(name.value) != 0) {
      out.push_back(topology.mistake(name.where, what + " cannot be called '" + name.value +
                                                     "': that is the name of another unit"));
    } else if (!seen.insert(name.value).second) {
      out.push_back(
          topology.mistake(name.where, "two " + all + " are called '" + name.value + "'",
                           "messages and traces name " + all + ": give each its own name"));
    }
  };
  for (const stage_entry& stage : topology.units.stages) check(stage.name, "a stage", "stages");
  for (const experts_entry& slice : topology.units.experts)
    check(slice.name, "a slice of experts", "stages or slices of experts");
  for (const engram_entry& shard : topology.units.engram_shards.value)
    check(shard.name, "a shard of a table", "stages, slices of experts or shards of tables");
  for (const indexer_entry& shard : topology.units.indexers)
    check(shard.name, "an indexer", "stages, slices of experts or indexers");
}

void check_every_node_is_used(const document& topology, std::vector<diagnostic>& out) {
  std::set<std::string> used{topology.units.scheduler_node.value};
  for (const auto* device : devices_of_units(topology.units)) {
    const auto index = index_of_device(topology, device->value);
    // An unknown device or node is reported elsewhere; it might have been meant for any node.
    if (!index || topology.devices[*index].node.value.empty()) return;
    used.insert(topology.devices[*index].node.value);
  }
  for (const node_entry& node : topology.nodes) {
    if (used.count(node.name.value) != 0) continue;
    out.push_back(topology.mistake(node.name.where, "node '" + node.name.value + "' runs no unit",
                                   "place a unit on one of its devices, or remove it"));
  }
}

}  // namespace

std::optional<device_kind> device_kind_of(std::string_view word) noexcept {
  if (word == "cpu") return device_kind::cpu;
  if (word == "cuda") return device_kind::cuda;
  if (word == "reference") return device_kind::reference;
  return std::nullopt;
}

std::optional<transport_kind> transport_kind_of(std::string_view word) noexcept {
  if (word == "ucx") return transport_kind::ucx;
  if (word == "loopback") return transport_kind::loopback;
  return std::nullopt;
}

std::optional<std::uint32_t> index_of_node(const document& topology, std::string_view name) {
  return index_of(topology.nodes, name);
}

std::optional<std::uint32_t> index_of_device(const document& topology, std::string_view name) {
  return index_of(topology.devices, name);
}

void check_names(const document& topology, std::vector<diagnostic>& out) {
  const auto node_names = names_of(topology.nodes);
  const auto device_names = names_of(topology.devices);
  for (const device_entry& device : topology.devices) {
    if (!index_of_node(topology, device.node.value)) {
      report_unknown(topology, device.node, "node", node_names, out);
    }
    if (!device_kind_of(device.kind.value)) {
      report_unknown(topology, device.kind, "device kind", device_kinds, out);
    }
  }
  const located<std::string>& scheduler = topology.units.scheduler_node;
  const bool scheduler_exists = index_of_node(topology, scheduler.value).has_value();
  if (!scheduler_exists) report_unknown(topology, scheduler, "node", node_names, out);
  for (const auto* device : devices_of_units(topology.units)) {
    if (!index_of_device(topology, device->value)) {
      report_unknown(topology, *device, "device", device_names, out);
    }
  }
  if (topology.client.given && !index_of_node(topology, topology.client.value)) {
    report_unknown(topology, topology.client, "node", node_names, out);
  } else if (scheduler_exists && !topology.client.wrong &&
             topology.client.value != scheduler.value) {
    out.push_back(topology.mistake(scheduler.where,
                                   "the scheduler is on node '" + scheduler.value +
                                       "', but the client is node '" + topology.client.value +
                                       "': requests enter the scheduler in the client's process",
                                   "write scheduler: {node: " + topology.client.value + "}"));
  }
  check_unit_names(topology, out);
  check_every_node_is_used(topology, out);
}

void check_model(const document& topology, std::vector<diagnostic>& out) {
  if (topology.model_path.given || topology.model_path.wrong) return;
  for (const node_entry& node : topology.nodes) {
    if (node.model_path.given || node.model_path.wrong) continue;
    out.push_back(topology.mistake(node.name.where,
                                   "node '" + node.name.value + "' has no checkpoint",
                                   "write model: {path: FOLDER} for all nodes, or start with -m"));
  }
}

void check_addresses(const document& topology, std::vector<diagnostic>& out) {
  const bool remote_allowed = topology.security.allow_remote.value;
  for (const node_entry& node : topology.nodes) {
    const std::string named =
        "node '" + node.name.value + "' has address " + in_quotes(node.address.value);
    switch (classify_address(node.address.value)) {
      case address_kind::loopback:
        break;
      case address_kind::malformed:
        out.push_back(topology.mistake(node.address.where, named + ", which is no address",
                                       "write an IP address or a host name, without a port"));
        break;
      case address_kind::any:
        out.push_back(topology.mistake(node.address.where,
                                       named + ", where no other node can reach it",
                                       "write the address that the other nodes use"));
        break;
      case address_kind::remote:
        if (remote_allowed) break;
        out.push_back(topology.mistake(
            node.address.where,
            named + ", which other hosts can reach: they could read prompts and inject tokens",
            "if that is meant, write security: {allow_remote: true, secret_file: FILE}"));
        break;
    }
  }
  if (remote_allowed && !topology.security.secret_file.given &&
      !topology.security.secret_file.wrong) {
    out.push_back(
        topology.mistake(topology.security.allow_remote.where,
                         "'security.allow_remote' needs 'security.secret_file': nodes of "
                         "different hosts prove by it that they belong together",
                         "write secret_file: FILE, a copy of the same file on every host"));
  }
}

void check_joining(const document& topology, std::vector<diagnostic>& out) {
  const located<std::string>& listen = topology.control.listen;
  const auto control = listen.given ? split_endpoint(listen.value) : std::nullopt;
  const auto kind = control ? classify_address(control->host) : address_kind::malformed;
  const std::string named = "'control.listen' is " + in_quotes(listen.value);
  if (listen.given && (kind == address_kind::malformed || kind == address_kind::any)) {
    out.push_back(
        topology.mistake(listen.where, named + ", which is no address that nodes can join",
                         "write HOST:PORT, the client's host as the nodes call it; port 0 is any "
                         "free one"));
  }
  if (kind == address_kind::remote && !topology.security.allow_remote.value) {
    out.push_back(topology.mistake(
        listen.where, named + ", which other hosts can reach: they could take a node's place",
        "if that is meant, write security: {allow_remote: true, secret_file: FILE}"));
  }
  for (const node_entry& node : topology.nodes) {
    const located<std::string>& start = node.start;
    if (std::find(start_words.begin(), start_words.end(), start.value) == start_words.end())
      report_unknown(topology, start, "start", start_words, out);
    if (start.value != "join") continue;
    const std::string joining = "node '" + node.name.value + "' is to join";
    if (node.name.value == topology.client.value) {
      out.push_back(topology.mistake(start.where,
                                     joining + ", but it is the client: the process "
                                               "that you start, and that others join",
                                     "remove it, or name another client"));
    } else if (transport_kind_of(topology.transport.kind.value) == transport_kind::loopback) {
      out.push_back(topology.mistake(
          start.where, joining + ", but transport 'loopback' puts all nodes into one process",
          "remove it, or write transport: {kind: ucx}"));
    } else if (!topology.security.secret_file.given && !topology.security.secret_file.wrong) {
      out.push_back(topology.mistake(
          start.where,
          joining + ", and proves by 'security.secret_file' that it may: it is missing",
          "write security: {secret_file: FILE}"));
    } else if (kind == address_kind::loopback &&
               classify_address(node.address.value) == address_kind::remote) {
      out.push_back(topology.mistake(
          listen.where,
          named + ", where node '" + node.name.value + "' of another host cannot reach it",
          "write the address of the client's host"));
    }
  }
}

void check_mode(const document& topology, std::vector<diagnostic>& out) {
  if (session::prefill_mode_of(topology.mode.value)) return;
  report_unknown(topology, topology.mode, "mode",
                 {std::begin(session::prefill_mode_names), std::end(session::prefill_mode_names)},
                 out);
}

void check_limits(const document& topology, const model::model_config& config,
                  std::vector<diagnostic>& out) {
  const auto& context = topology.limits.context;
  if (context.given && context.value > config.max_positions) {
    out.push_back(topology.mistake(context.where,
                                   "'limits.context' is " + std::to_string(context.value) +
                                       ", beyond the model's " +
                                       std::to_string(config.max_positions) + " positions",
                                   "write at most " + std::to_string(config.max_positions)));
  }
  const auto& requests = topology.limits.requests;
  const auto& rows = topology.limits.rows_per_step;
  if (requests.given && !rows.wrong && requests.value > rows.value) {
    out.push_back(topology.mistake(
        requests.where,
        "'limits.requests' is " + std::to_string(requests.value) + ", but 'limits.rows_per_step' " +
            std::to_string(rows.value) +
            ": a step has a row for every answer that is being generated",
        "write at most " + std::to_string(rows.value) + ", or raise rows_per_step"));
  }
  const auto& prefill = topology.limits.prefill_rows;
  if (prefill.given && !rows.wrong && prefill.value > rows.value) {
    out.push_back(topology.mistake(prefill.where,
                                   "'limits.prefill_rows' is " + std::to_string(prefill.value) +
                                       ", more than the " + std::to_string(rows.value) +
                                       " of 'limits.rows_per_step'",
                                   "write at most " + std::to_string(rows.value)));
  }
  const auto& kv = topology.limits.kv_positions;
  const std::uint64_t granule = kv_granule(config);
  const std::uint64_t longest = std::min(context.value, config.max_positions);
  const std::uint64_t least = (longest + granule - 1) / granule * granule;
  if (kv.given && !context.wrong && kv.value < least) {
    out.push_back(topology.mistake(
        kv.where,
        "'limits.kv_positions' is " + std::to_string(kv.value) + ", but one request may need " +
            std::to_string(least) + ": its " + std::to_string(longest) + " positions in steps of " +
            std::to_string(granule),
        "write at least " + std::to_string(least) + ", or lower limits.context"));
  }
}

std::uint32_t kv_granule(const model::model_config& config) {
  return memory::default_page_entries * model::ratios_lcm(model::schedule(config));
}

void check_transport(const document& topology, std::vector<diagnostic>& out) {
  const transport_entry& transport = topology.transport;
  const auto kind = transport_kind_of(transport.kind.value);
  if (!kind) report_unknown(topology, transport.kind, "transport kind", transport_kinds, out);
  for (const auto& each : transport.tls) {
    if (std::find(ucx_transports.begin(), ucx_transports.end(), each.value) ==
        ucx_transports.end()) {
      report_unknown(topology, each, "UCX transport", ucx_transports, out);
    }
  }
  if (kind == transport_kind::loopback) {
    for (const auto* given : {&transport.tls, &transport.devices}) {
      if (given->empty()) continue;
      out.push_back(topology.mistake(given->front().where,
                                     "transport 'loopback' is memory and takes no list",
                                     "remove it, or write kind: ucx"));
    }
    return;
  }
  if (topology.nodes.size() > 1 && transport.tls.size() == 1 && transport.tls[0].value == "self") {
    out.push_back(topology.mistake(transport.tls[0].where,
                                   "'self' connects a process with itself only",
                                   "write tls: [tcp, self]"));
  }
  const bool remote =
      std::any_of(topology.nodes.begin(), topology.nodes.end(), [](const node_entry& node) {
        return classify_address(node.address.value) == address_kind::remote;
      });
  if (kind && remote && transport.devices.empty()) {
    out.push_back(
        topology.mistake(transport.kind.where,
                         "'transport.devices' must name the network interfaces when nodes "
                         "are on other hosts: the default is lo",
                         "write devices: [INTERFACE]; 'ucx_info -d' lists them"));
  }
}

void check_deadlines(const document& topology, std::vector<diagnostic>& out) {
  const deadlines_entry& deadlines = topology.deadlines;
  if (deadlines.heartbeat_lost.wrong || deadlines.heartbeat_interval.wrong) return;
  if (deadlines.heartbeat_lost.value <= 2 * std::uint64_t{deadlines.heartbeat_interval.value}) {
    const auto& blamed =
        deadlines.heartbeat_lost.given ? deadlines.heartbeat_lost : deadlines.heartbeat_interval;
    out.push_back(topology.mistake(
        blamed.where, "'heartbeat_lost' (" + std::to_string(deadlines.heartbeat_lost.value) +
                          " ms) is not more than two 'heartbeat_interval' (" +
                          std::to_string(deadlines.heartbeat_interval.value) +
                          " ms): one late heartbeat would look like a lost node"));
  }
}

}  // namespace cedar::topology::internal
