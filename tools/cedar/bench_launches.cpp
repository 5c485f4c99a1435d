#include "tools/cedar/bench_launches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "kernels/plan/launches.hpp"
#include "tools/cedar/synthetic_layers.hpp"
#include "tools/cedar/timed_backend.hpp"

namespace cedar::tools {

namespace {

/// Of the request before the rows: past a window, and the next row completes a group of entries.
constexpr std::uint32_t context = 1023;
/// In memory: which of them a row takes changes no number of kernels.
constexpr std::uint32_t experts_held = 16;
/// Kernels of a layer that reuses a selection, reported of an implementation that fuses as far as
/// it can: in prefill and in decode.
constexpr std::uint32_t reported_prefill = 15, reported_decode = 11;

std::uint64_t kernels_of(const std::string& operation, std::uint64_t calls) {
  return calls * cedar::kernels::plan::launches_of(operation);
}

std::string rows_name(std::uint32_t rows) {
  return fmt::format("{} row{}", rows, rows == 1 ? "" : "s");
}

}  // namespace

std::uint64_t layer_launches::kernels() const {
  std::uint64_t out = 0;
  for (const auto& [operation, times] : calls) out += kernels_of(operation, times);
  return out;
}

result<std::vector<layer_launches>> count_launches(const model::model_config& config,
                                                   const kernels::backend& backend,
                                                   const std::vector<std::size_t>& rows) {
  const std::size_t most = *std::ranges::max_element(rows);
  synthetic_layers layers(
      config, std::min(config.routed_experts, std::max(config.experts_per_token, experts_held)),
      context + static_cast<std::uint32_t>(most));
  std::vector<layer_launches> out;
  for (const layer_kind& kind : layers.kinds())
    for (const std::size_t count : rows) {
      const auto n = static_cast<std::uint32_t>(count);
      // Anew, as a ring holds no more than a window of positions.
      if (const auto filled = layers.fill(backend, context); !filled) return fail(filled.error());
      const timed_backend watched(backend);
      const auto ran = layers.run_between(watched, backend, kind.layer, n);
      if (!ran) return fail(ran.error());
      layer_launches& found = out.emplace_back(layer_launches{kind.name, n, {}});
      for (const auto& [name, time] : watched.operations()) found.calls[name] = time.calls;
    }
  return out;
}

namespace {

/// Layers of one kind, a number of rows each.
using kind_launches = std::vector<const layer_launches*>;

std::vector<kind_launches> by_kind(const std::vector<layer_launches>& all) {
  std::vector<kind_launches> out;
  for (const layer_launches& each : all) {
    if (out.empty() || out.back().front()->kind != each.kind) out.emplace_back();
    out.back().push_back(&each);
  }
  return out;
}

}  // namespace

std::string launches_text(const std::vector<layer_launches>& all) {
  std::string out;
  const auto to = std::back_inserter(out);
  const auto line = [&](const std::string& name, const kind_launches& of, const auto& value) {
    fmt::format_to(to, "{:<34}", name);
    for (const layer_launches* each : of) fmt::format_to(to, "{:>10}", value(*each));
    out += "\n";
  };
  const std::vector<kind_launches> kinds = by_kind(all);
  line("kernels of a layer on a CUDA device", kinds.front(),
       [](const layer_launches& of) { return rows_name(of.rows); });
  for (const kind_launches& kind : kinds)
    line(kind.front()->kind, kind, [](const layer_launches& of) { return of.kernels(); });
  fmt::format_to(to, "reported of a layer that reuses: {} in decode, {} in prefill\n",
                 reported_decode, reported_prefill);
  const auto reusing = std::ranges::find_if(
      kinds, [](const kind_launches& kind) { return kind.front()->kind.starts_with("reuse"); });
  if (reusing == kinds.end()) return out;
  fmt::format_to(to, "\nof {}:\n", reusing->front()->kind);
  for (const auto& [operation, calls] : reusing->front()->calls)
    line("  " + operation, *reusing, [&](const layer_launches& of) {
      const auto found = of.calls.find(operation);
      return found == of.calls.end() ? 0 : kernels_of(operation, found->second);
    });
  return out;
}

}  // namespace cedar::tools
