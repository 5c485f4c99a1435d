#include "topology/plan/render.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "topology/plan/internal/texts.hpp"
#include "topology/plan/link_costs.hpp"

namespace cedar::topology {

namespace {

using internal::grouped;
using internal::holds;
using internal::milliseconds;
using internal::ranges_text;
using table = std::vector<std::vector<std::string>>;

/// Or what stands in place of one.
bool is_number(const std::string& cell) {
  if (cell == "-") return true;
  return !cell.empty() && cell.find_first_not_of("0123456789,.") == std::string::npos;
}

/// Rows of cells as aligned columns, those of numbers (after the heading) to the right.
std::string aligned(const table& rows) {
  std::vector<std::size_t> widths;
  std::vector<bool> numbers;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    numbers.resize(widths.size(), true);
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
      if (&row != &rows.front()) numbers[i] = numbers[i] && is_number(row[i]);
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool right = rows.size() > 1 && numbers[i];
      line += right ? fmt::format(" {:>{}}", row[i], widths[i])
                    : fmt::format(" {:<{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// "cpu0 (cpu)", "cpu0 (cpu, 4 threads, cores 0-3, nice 5)", "gpu0 (cuda 0)".
std::string device_text(const device_plan& device) {
  std::string text = fmt::format("{} ({}", device.name, to_string(device.kind));
  if (device.kind == device_kind::cuda) text += fmt::format(" {}", device.index);
  if (device.threads > 1) text += fmt::format(", {} threads", device.threads);
  if (!device.cores.empty())
    text +=
        fmt::format(", core{} {}", device.cores.size() == 1 ? "" : "s", ranges_text(device.cores));
  if (device.numa) text += fmt::format(", numa {}", *device.numa);
  if (device.nice > 0) text += fmt::format(", nice {}", device.nice);
  return text + ")";
}

std::string nodes_text(const plan& planned) {
  table rows;
  for (const node_plan& node : planned.nodes()) {
    std::vector<std::string> units;
    for (const unit_id unit : node.units) units.push_back(planned[unit].name);
    rows.push_back({node.name, node.address,
                    node.id == planned.client().id   ? "this process"
                    : node.start == node_start::join ? "joins by itself"
                                                     : "its own process",
                    joined(units), node.model_path.string()});
  }
  return "nodes\n" + aligned(rows);
}

std::string units_text(const plan& planned) {
  table rows;
  for (const unit_plan& unit : planned.units()) {
    const std::string device = unit.device ? device_text(planned[*unit.device]) : "no device";
    rows.push_back({unit.name, planned[unit.node].name, device, holds(unit)});
  }
  return "units\n" + aligned(rows);
}

/// What the units of a device, or the scheduler, need: a line each.
std::string memory_text(const plan& planned, const cost_basis& basis) {
  const std::vector<memory_need> units = memory_of_units(planned, basis.load);
  const std::vector<memory_need> devices = memory_of_devices(planned, basis.load);
  table rows = {{"device", "weights", "KV", "working", "credit", "total", "has"}};
  const auto add = [&](const std::string& name, const memory_need& need,
                       const std::optional<std::uint64_t>& limit) {
    rows.push_back({name, grouped(need.weights), grouped(need.kv), grouped(need.working),
                    grouped(need.credit), grouped(need.total()), limit ? grouped(*limit) : ""});
  };
  for (const device_plan& device : planned.devices())
    add(device.name, devices[device.id.value], device.memory);
  for (const unit_plan& unit : planned.units())
    if (!unit.device) add("no device (" + unit.name + ")", units[unit.id.value], std::nullopt);
  return fmt::format("memory (bytes; KV of {} requests of {} positions)\n", basis.load.requests,
                     basis.load.positions) +
         aligned(rows);
}

/// "513 a row + 24 a request": the formula, without its zero terms.
std::string formula(const edge_plan& edge, const model::model_config& config) {
  const message_size& size = edge.size;
  std::string text;
  const auto add = [&text](std::uint64_t bytes, const char* of) {
    if (bytes == 0) return;
    text += (text.empty() ? "" : " + ") + grouped(bytes) + of;
  };
  add(size.per_row, " a row");
  add(size.per_decoder_row, " a decoder row");
  add(size.per_wanted, " a wanted row");
  add(size.per_entry, " an entry");
  add(size.per_selected, " a chosen entry");
  add(size.per_earlier_id, " an earlier id");
  add(size.per_tapped_row, " a tapped row");
  add(size.per_order, " an order");
  add(size.per_drafted_token, " a drafted token");
  add(size.per_image_row, " an image row");
  add(size.per_routed_row, " a routed row");
  add(size.per_choice, " a choice");
  add(size.per_asking_row, " an asking row");
  add(size.per_table_row, " a table row");
  add(size.per_request, " a request");
  if (edge.kind == edge_kind::image) return grouped(cell_bytes(config)) + " a cell of an image";
  if (edge.groups.empty()) return text;
  if (edge.follows_routes())
    return text + fmt::format(", for each of {} layers", edge.messages_per_step());
  return text + fmt::format(", for each of layers {}", fmt::join(edge.groups, ", "));
}

/// Milliseconds, or "-" where no link is declared.
std::string time_text(const std::optional<std::chrono::nanoseconds>& taken) {
  return taken ? milliseconds(*taken) : "-";
}

std::string edges_text(const plan& planned, const cost_basis& basis) {
  const step_shape full = planned.limits().largest_step(planned.model());
  const bool rated = basis.steps_per_second > 0;
  const bool timed = !planned.links().empty();
  table rows = {{"id", "edge", "path", "decode row", "decode step", "full step"}};
  if (timed) rows[0].emplace_back("link ms");
  if (rated) rows[0].emplace_back("a second");
  for (const char* heading : {"credit", "messages", "size of a message"})
    rows[0].emplace_back(heading);
  std::uint64_t crossing = 0;
  std::uint64_t crossing_decode = 0;
  for (const edge_plan& edge : planned.edges()) {
    if (edge.kind == edge_kind::tap) continue;
    const edge_cost cost = cost_of(planned, edge.id, basis);
    if (edge.crosses()) crossing += cost.largest_step;
    if (edge.crosses()) crossing_decode += cost.decode_step;
    rows.push_back({std::to_string(edge.id.value), edge.name,
                    edge.crosses() ? "between nodes" : "in memory", grouped(cost.decode_row),
                    grouped(cost.decode_step), grouped(cost.largest_step)});
    if (timed)
      rows.back().push_back(time_text(time_on_link(planned, edge.id, step_kind::decode, basis)));
    if (rated) rows.back().push_back(grouped(cost.per_second));
    for (const std::string& cell :
         {grouped(edge.window_bytes), grouped(std::uint64_t{edge.window_messages}),
          formula(edge, planned.model())})
      rows.back().push_back(cell);
  }
  const std::uint64_t requests = std::min(basis.load.requests, planned.limits().rows_per_step);
  std::string text = fmt::format(
      "edges (bytes; a decode row is at position {}, a decode step has {} of them, a full step has "
      "{} rows of {} requests{}{})\n",
      std::max(basis.load.positions, 1U) - 1, requests, full.rows, full.requests,
      timed ? ", link ms: of a decode step" : "",
      rated ? fmt::format(", {:g} decode steps a second", basis.steps_per_second) : "");
  text += aligned(rows);
  text += fmt::format("  {} bytes of a decode step cross between nodes, {} of a full step\n",
                      grouped(crossing_decode), grouped(crossing));
  return text;
}

std::string path_text(const plan& planned, step_kind step, const cost_basis& basis) {
  const link_path path = longest_link_path(planned, step, basis);
  std::vector<std::string> names;
  for (const edge_id edge : path.edges) names.push_back(planned[edge].name);
  return fmt::format("  a {} step spends at least {} ms on links{}{}\n",
                     step == step_kind::decode ? "decode" : "full", milliseconds(path.time),
                     names.empty() ? "" : ": ", joined(names));
}

/// What the declared links make of all that crosses them, or nothing if none is declared.
std::string links_text(const plan& planned, const cost_basis& basis) {
  if (planned.links().empty()) return "";
  const bool rated = basis.steps_per_second > 0;
  table rows = {{"from", "to", "link", "decode step", "ms", "full step", "ms"}};
  if (rated) rows[0].insert(rows[0].end(), {"a second", "% of its bandwidth"});
  for (const link_cost& link : link_costs_of(planned, basis)) {
    rows.push_back({planned[link.from].name, planned[link.to].name,
                    link.shape ? to_string(*link.shape) : "not declared", grouped(link.decode_step),
                    time_text(link.decode_time), grouped(link.full_step),
                    time_text(link.full_time)});
    if (!rated) continue;
    rows.back().push_back(grouped(link.per_second));
    rows.back().push_back(link.shape ? grouped(100 * link.busy) : "-");
  }
  return "links (bytes of a step, and ms from their departure until the last has arrived; jitter "
         "and losses come on top)\n" +
         aligned(rows) + path_text(planned, step_kind::decode, basis) +
         path_text(planned, step_kind::full, basis);
}

/// Both modes of every split, or nothing if there is none.
std::string splits_text(const plan& planned, const cost_basis& basis) {
  const std::vector<split_cost> splits = splits_of(planned, basis);
  if (splits.empty()) return "";
  table rows = {{"owner", "mode", "readers", "mirror a row", "gather a row", "replicas"}};
  for (const split_cost& split : splits) {
    std::vector<std::string> readers;
    for (const unit_id reader : split.readers) readers.push_back(planned[reader].name);
    rows.push_back({"layer " + std::to_string(split.owner), split.gather ? "gather" : "mirror",
                    joined(readers), grouped(split.mirror_row), grouped(split.gather_row),
                    grouped(split.mirror_memory)});
  }
  return "splits (bytes a decode row over all readers; replicas: memory that mirror needs)\n" +
         aligned(rows);
}

std::string taps_text(const plan& planned) {
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  for (const edge_plan& edge : planned.edges()) {
    if (edge.kind != edge_kind::tap) continue;
    ++count;
    bytes += edge.window_bytes;
  }
  return fmt::format("  {} more edges carry taps when a step asks for them; credit {} bytes\n",
                     count, grouped(bytes));
}

std::string bounds_text(const plan& planned) {
  const limits_plan& limits = planned.limits();
  const transport_plan& transport = planned.transport();
  const deadlines_plan& deadlines = planned.deadlines();
  const security_plan& security = planned.security();
  const bool asks = std::ranges::any_of(
      planned.edges(), [](const edge_plan& edge) { return is_request(edge.kind); });
  std::string carrier(to_string(transport.kind));
  if (transport.kind == transport_kind::ucx) {
    carrier +=
        fmt::format(", transports {} on {}", joined(transport.tls), joined(transport.devices));
  }
  const std::string drafts =
      limits.draft_tokens == 0
          ? ""
          : fmt::format("  drafts     {} tokens for each step of an answer at most{}\n",
                        limits.draft_tokens, limits.draft_policy ? ", as many as pay" : "");
  return fmt::format(
      "bounds\n"
      "  mode       {}\n"
      "  limits     {} rows a step, {} requests, {} positions a request, {} steps in flight\n"
      "  prompts    {} rows a step while answers are generated\n"
      "  kv         {} positions of all requests together, given out by {}{}\n"
      "{}"
      "  transport  {}\n"
      "  deadlines  start {} ms, step {} ms, lost after {} ms of silence (a heartbeat every {} "
      "ms), "
      "drain {} ms\n"
      "  security   {}, {}\n"
      "  no deadlock: edges without the scheduler's form no cycle, and every window holds the "
      "messages of {} of the largest steps{}\n",
      to_string(planned.mode()), limits.rows_per_step, limits.requests, limits.context,
      limits.steps_in_flight, limits.prefill_rows, grouped(limits.kv_granules * limits.kv_granule),
      limits.kv_granule,
      limits.prefix_granules == 0
          ? std::string()
          : ", " + grouped(limits.prefix_granules * limits.kv_granule) + " of them for prefixes",
      drafts, carrier, deadlines.start.count(), deadlines.step.count(),
      deadlines.heartbeat_lost.count(), deadlines.heartbeat_interval.count(),
      deadlines.drain.count(),
      security.secret_file ? "secret from " + security.secret_file->string()
                           : "a fresh secret for every run",
      security.allow_remote ? "other hosts may connect" : "loopback only", limits.steps_in_flight,
      asks ? "; requests are answered from what is there, and their replies' credit is reserved"
           : "");
}

}  // namespace

std::string render_plan(const plan& planned, const cost_basis& basis) {
  return fmt::format("plan of {}: {} nodes, {} devices, {} units, {} edges\n", planned.file(),
                     planned.nodes().size(), planned.devices().size(), planned.units().size(),
                     planned.edges().size()) +
         nodes_text(planned) + units_text(planned) + memory_text(planned, basis) +
         edges_text(planned, basis) + taps_text(planned) + links_text(planned, basis) +
         splits_text(planned, basis) + bounds_text(planned);
}

std::string render_links(const plan& planned) {
  std::string text;
  for (const link_plan& link : planned.links()) {
    const link_shape* back = planned.link(link.to, link.from);
    const bool alike = back != nullptr && *back == link.shape;
    if (alike && link.to < link.from) continue;  // told already, or about to be
    text += fmt::format("{}{} {} {} {}", text.empty() ? "" : "; ", planned[link.from].name,
                        alike ? "<->" : "->", planned[link.to].name, to_string(link.shape));
  }
  return text;
}

std::string render_plan(const plan& planned) {
  return render_plan(planned, largest_basis(planned));
}

}  // namespace cedar::topology
