#include "tools/cedar/summary.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cedar::tools {

namespace {

std::string human_bytes(std::uint64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

/// A line for each mode that was asked for: how many rows each half computed.
std::string modes_text(const std::vector<session::usage>& used) {
  std::string text;
  for (const std::string_view name : session::prefill_mode_names) {
    std::uint64_t requests = 0, encoder = 0, decoder = 0, preemptions = 0;
    for (const session::usage& one : used) {
      if (to_string(one.mode) != name) continue;
      ++requests;
      encoder += one.encoder_rows;
      decoder += one.decoder_rows;
      preemptions += one.preemptions;
    }
    if (requests > 0)
      text += fmt::format(
          "mode {}: {} request{}, {} rows in the encoder, {} in the decoder, "
          "{} preemptions\n",
          name, requests, requests == 1 ? "" : "s", encoder, decoder, preemptions);
  }
  return text;
}

double milliseconds(std::int64_t us) {
  return static_cast<double>(us) / 1e3;
}

}  // namespace

std::vector<trace_process> trace_of(const std::vector<topology::node_report>& reports) {
  std::vector<trace_process> out;
  for (const topology::node_report& report : reports) {
    trace_process process{report.node, {}};
    for (const topology::traced& event : report.events)
      process.events.push_back({static_cast<trace_kind>(event.kind), event.track, event.step,
                                event.begin_us, event.duration_us, event.bytes, event.rows,
                                event.decoder_rows});
    out.push_back(std::move(process));
  }
  return out;
}

run_summary summarize(const std::vector<topology::node_report>& reports,
                      trace_clock::time_point begin) {
  run_summary out;
  std::int64_t first = 0;
  std::int64_t last = 0;
  for (const trace_process& process : trace_of(reports))
    for (const trace_event& event : process.events) {
      if (event.kind == trace_kind::message) {
        edge_summary& edge = out.edges[event.track];
        ++edge.messages;
        edge.bytes += event.bytes;
        edge.waited_us += event.duration_us;
        if (!event.track.ends_with("proposal")) continue;
        const std::int64_t left = event.begin_us + event.duration_us;
        first = out.proposals == 0 ? left : std::min(first, left);
        last = std::max(last, left);
        ++out.proposals;
        continue;
      }
      unit_summary& unit = out.units[event.track];
      if (event.kind == trace_kind::wait) {
        unit.wait_us += event.duration_us;
      } else {
        ++unit.steps;
        unit.rows += event.rows;
        unit.compute_us += event.duration_us;
      }
    }
  out.first_token_us = first - trace_us(begin);
  out.steps_us = last - first;
  for (const topology::node_report& report : reports)
    for (const topology::engram_report& unit : report.engram)
      out.engram[unit.unit] += {unit.rows_sent, unit.steps, unit.late, unit.waited_us};
  for (const topology::node_report& report : reports)
    for (const topology::link_report& link : report.links)
      out.links.push_back(fmt::format("{} -> {}: {}, {} frames, {}", report.node, link.peer,
                                      link.transport, link.frames_sent,
                                      human_bytes(link.bytes_sent)));
  return out;
}

std::string render_summary(const run_summary& run, std::size_t processes,
                           const std::vector<session::usage>& used) {
  std::string text =
      fmt::format("{} steps in {} process{}, first answer after {:.0f} ms", run.proposals,
                  processes, processes == 1 ? "" : "es", milliseconds(run.first_token_us));
  if (run.proposals > 1)
    text += fmt::format(", then {:.1f} steps/s", static_cast<double>(run.proposals - 1) * 1e6 /
                                                     static_cast<double>(run.steps_us));
  text += "\n" + modes_text(used);
  text += fmt::format("\n{:<44} {:>9} {:>12} {:>12}\n", "edge", "messages", "bytes", "waited ms");
  for (const auto& [name, edge] : run.edges)
    text += fmt::format("{:<44} {:>9} {:>12} {:>12.2f}\n", name, edge.messages,
                        human_bytes(edge.bytes), milliseconds(edge.waited_us));
  text += fmt::format("\n{:<44} {:>9} {:>12} {:>12}\n", "unit", "rows", "compute ms", "waited ms");
  for (const auto& [name, unit] : run.units)
    text += fmt::format("{:<44} {:>9} {:>12.1f} {:>12.1f}\n", name, unit.rows,
                        milliseconds(unit.compute_us), milliseconds(unit.wait_us));
  if (!run.engram.empty())
    text += fmt::format("\n{:<44} {:>9} {:>12} {:>12} {:>12}\n", "Engram", "rows sent", "steps",
                        "late", "waited ms");
  for (const auto& [name, unit] : run.engram)
    text += fmt::format("{:<44} {:>9} {:>12} {:>12} {:>12.2f}\n", name, unit.rows_sent, unit.steps,
                        unit.late, static_cast<double>(unit.waited_us) / 1e3);
  if (!run.links.empty()) text += "\nlinks\n";
  for (const std::string& link : run.links) text += "  " + link + "\n";
  return text;
}

}  // namespace cedar::tools
