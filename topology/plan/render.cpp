#include "topology/plan/render.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cedar::topology {

namespace {

using table = std::vector<std::vector<std::string>>;

bool is_number(const std::string& cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789,") == std::string::npos;
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

/// 1234567 as "1,234,567".
std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string layers_text(layer_range range) {
  return range.first == range.last ? fmt::format("layer {}", range.first)
                                   : fmt::format("layers {}-{}", range.first, range.last);
}

std::string holds(const unit_plan& unit) {
  if (const auto* stage = std::get_if<stage_role>(&unit.role)) return layers_text(stage->layers);
  if (const auto* engram = std::get_if<engram_role>(&unit.role)) {
    return fmt::format("tables of layers {}", fmt::join(engram->layers, ", "));
  }
  return "";
}

/// "cpu0 (cpu)", "cpu0 (cpu, 4 threads)".
std::string device_text(const device_plan& device) {
  const std::string threads =
      device.threads == 1 ? "" : fmt::format(", {} threads", device.threads);
  return fmt::format("{} ({}{})", device.name, to_string(device.kind), threads);
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

/// "513 a row + 20 a request": the formula, without its zero terms.
std::string formula(const message_size& size) {
  std::vector<std::string> terms;
  if (size.per_row != 0) terms.push_back(grouped(size.per_row) + " a row");
  if (size.per_wanted != 0) terms.push_back(grouped(size.per_wanted) + " a wanted row");
  if (size.per_request != 0) terms.push_back(grouped(size.per_request) + " a request");
  std::string text;
  for (const std::string& term : terms) text += (text.empty() ? "" : " + ") + term;
  return text;
}

std::string edges_text(const plan& planned) {
  const step_shape full = planned.limits().largest_step(planned.model());
  table rows = {{"id", "edge", "path", "full step", "credit", "messages", "size"}};
  std::uint64_t crossing = 0;
  for (const edge_plan& edge : planned.edges()) {
    if (edge.kind == edge_kind::tap) continue;
    const std::uint64_t bytes = edge.size.bytes(full);
    if (edge.crosses()) crossing += bytes;
    rows.push_back({std::to_string(edge.id.value), edge.name,
                    edge.crosses() ? "between nodes" : "in memory", grouped(bytes),
                    grouped(edge.window_bytes), grouped(edge.window_messages), formula(edge.size)});
  }
  return fmt::format("edges (bytes; a full step has {} rows of {} requests)\n", full.rows,
                     full.requests) +
         aligned(rows) +
         fmt::format("  {} bytes of a full step cross between nodes\n", grouped(crossing));
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
  std::string carrier(to_string(transport.kind));
  if (transport.kind == transport_kind::ucx) {
    carrier +=
        fmt::format(", transports {} on {}", joined(transport.tls), joined(transport.devices));
  }
  return fmt::format(
      "bounds\n"
      "  mode       {}\n"
      "  limits     {} rows a step, {} requests, {} positions a request, {} steps in flight\n"
      "  prompts    {} rows a step while answers are generated\n"
      "  kv         {} positions of all requests together, given out by {}\n"
      "  transport  {}\n"
      "  deadlines  start {} ms, step {} ms, lost after {} ms of silence (a heartbeat every {} "
      "ms), "
      "drain {} ms\n"
      "  security   {}, {}\n"
      "  no deadlock: edges without the scheduler's form no cycle, and every window holds {} "
      "messages "
      "of the largest size\n",
      to_string(planned.mode()), limits.rows_per_step, limits.requests, limits.context,
      limits.steps_in_flight, limits.prefill_rows, grouped(limits.kv_granules * limits.kv_granule),
      limits.kv_granule, carrier, deadlines.start.count(), deadlines.step.count(),
      deadlines.heartbeat_lost.count(), deadlines.heartbeat_interval.count(),
      deadlines.drain.count(),
      security.secret_file ? "secret from " + security.secret_file->string()
                           : "a fresh secret for every run",
      security.allow_remote ? "other hosts may connect" : "loopback only", limits.steps_in_flight);
}

}  // namespace

std::string render_plan(const plan& planned) {
  return fmt::format("plan of {}: {} nodes, {} devices, {} units, {} edges\n", planned.file(),
                     planned.nodes().size(), planned.devices().size(), planned.units().size(),
                     planned.edges().size()) +
         nodes_text(planned) + units_text(planned) + edges_text(planned) + taps_text(planned) +
         bounds_text(planned);
}

}  // namespace cedar::topology
