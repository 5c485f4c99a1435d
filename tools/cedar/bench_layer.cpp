// `cedar bench layer`: what a layer takes for one row, against the bytes that it must read.
#include <fmt/format.h>

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>

#include "tools/cedar/bench.hpp"
#include "tools/cedar/bench_ceilings.hpp"
#include "tools/cedar/bench_machine.hpp"
#include "tools/cedar/bench_report.hpp"
#include "tools/cedar/pipeline.hpp"
#include "tools/cedar/synthetic_layers.hpp"
#include "tools/cedar/timed_backend.hpp"

namespace cedar::tools {

namespace {

struct options {
  machine_options machine;
  std::string kind;  ///< empty: the first Reuse
  std::uint32_t experts = 0;  ///< 0: all that fit
  std::uint32_t context = 65536;
};

constexpr std::size_t evicting_bytes = std::size_t{256} << 20;

/// All of them if they take at most half of what memory is there, else 64.
std::uint32_t experts_for(const options& chosen, const model::model_config& config) {
  if (chosen.experts != 0) return chosen.experts;
  const double bytes = 1.6 * config.routed_experts * config.width * config.expert_inner;
  const double memory = static_cast<double>(::sysconf(_SC_AVPHYS_PAGES)) *
                        static_cast<double>(::sysconf(_SC_PAGESIZE));
  return bytes < memory / 2 ? config.routed_experts : std::min(config.routed_experts, 64U);
}

result<layer_kind> kind_of(const synthetic_layers& layers, const std::string& name) {
  std::string names;
  for (const layer_kind& kind : layers.kinds()) {
    if (name.empty() ? kind.name.starts_with("reuse") : kind.name == name) return kind;
    names += (names.empty() ? "" : "; ") + kind.name;
  }
  return fail(errc::invalid_argument, "--kind: the model has " + names);
}

struct layer_times {
  std::vector<double> seconds;
  std::vector<double> ratios;  ///< to the least time of the same round
  std::vector<double> rates;  ///< of reading
};

/// A round: memory is read, so that nothing of the layer is in a cache, and its rate is the
/// ceiling.
result<layer_times> time_layer(synthetic_layers& layers, const kernels::backend& backend,
                               std::uint32_t layer, ceilings& limits, std::size_t evicted,
                               std::uint32_t threads, std::uint32_t repeat) {
  layer_times out;
  const double bytes = layers.bytes_to_read(layer);
  for (std::uint32_t round = 0; round <= repeat; ++round) {
    const double rate = limits.read_sample(evicted);
    result<void> done;
    const double seconds = seconds_of(threads, [&] { done = layers.run(backend, layer); });
    if (!done) return fail(done.error());
    if (round == 0) continue;  // scratch memory was not there yet
    out.seconds.push_back(seconds);
    out.rates.push_back(rate);
    out.ratios.push_back(seconds / (bytes / rate));
  }
  return out;
}

std::vector<double> microseconds(std::vector<double> seconds) {
  for (double& value : seconds) value *= 1e6;
  return seconds;
}

/// Rows of a layer's operations: what each took beyond its own bytes at the rate of reading.
void add_operations(bench_report& to, const std::string& prefix, const timed_backend& timed,
                    std::uint32_t repeat, double rate, bool print) {
  if (print)
    fmt::print("  {:<44}{:>8}{:>12}{:>12}{:>12}\n", "operation", "calls", "time us", "MB",
               "beyond us");
  const auto add = [&](const std::string& name, const operation_time& time) {
    const double us = time.seconds * 1e6 / repeat;
    const double bytes = time.bytes / repeat;
    const double beyond = us - bytes / rate * 1e6;
    const auto calls = static_cast<double>(time.calls) / repeat;
    to.rows.push_back({prefix + name,
                       {repeat, us, us, us},
                       {{"calls", calls}, {"bytes", bytes}, {"beyond_us", beyond}},
                       {}});
    if (print)
      fmt::print("  {:<44}{:>8.1f}{:>12.1f}{:>12.3f}{:>12.1f}\n", name, calls, us, bytes * 1e-6,
                 beyond);
  };
  for (const auto& [name, time] : by_time(timed.operations())) add(name, time);
  operation_time others;
  std::size_t shown = 0;
  for (const auto& [name, time] : by_time(timed.between())) {
    if (++shown <= 6) {
      add("between " + name, time);
      continue;
    }
    others.calls += time.calls;
    others.seconds += time.seconds;
  }
  add("between other operations", others);
}

result<void> measure(const options& chosen, synthetic_layers& layers, const layer_kind& kind,
                     stream_memory& evicting, std::uint32_t threads, bench_report& to) {
  const auto backend = make_bench_backend(chosen.machine, threads);
  if (!backend) return fail(backend.error());
  if (const auto filled = layers.fill(**backend, chosen.context - 1); !filled) return filled;
  ceilings limits(evicting, threads, chosen.machine.isa == "avx2");
  const std::uint32_t repeat = chosen.machine.repeat;
  const auto plain =
      time_layer(layers, **backend, kind.layer, limits, evicting.bytes(), threads, repeat);
  if (!plain) return fail(plain.error());
  timed_backend counted(**backend, [threads] { return seconds_now(threads); });
  for (std::uint32_t round = 0; round < repeat; ++round) {
    counted.pause();
    limits.read_sample(evicting.bytes());
    if (const auto done = layers.run(counted, kind.layer); !done) return done;
  }
  bench_row row{fmt::format("{}, context {}, {}", kind.name, chosen.context, threads_text(threads)),
                spread_of(microseconds(plain->seconds)),
                {},
                {}};
  const double bytes = layers.bytes_to_read(kind.layer);
  const double rate = spread_of(plain->rates).median;
  row.numbers = {{"bytes", bytes},
                 {"read_GBps", rate * 1e-9},
                 {"least_us", bytes / rate * 1e6},
                 {"ratio", spread_of(plain->ratios).median},
                 {"experts", layers.config().routed_experts}};
  if (!chosen.machine.json)
    fmt::print(
        "{}: {:.0f} us (+- {:.1f} %), {:.1f} MB at {:.2f} GB/s are {:.0f} us: ratio {:.2f}\n",
        row.name, row.time_us.median, 100 * row.time_us.relative(), bytes * 1e-6, rate * 1e-9,
        bytes / rate * 1e6, row.numbers["ratio"]);
  const std::string prefix = row.name + ": ";
  to.rows.push_back(std::move(row));
  add_operations(to, prefix, counted, repeat, rate, !chosen.machine.json);
  return {};
}

result<void> run(const options& chosen) {
  const auto config = config_of(chosen.machine);
  if (!config) return fail(config.error());
  if (chosen.context < 2 || chosen.context > config->max_positions)
    return fail(errc::invalid_argument, fmt::format("--context {}: the model has 2 to {} positions",
                                                    chosen.context, config->max_positions));
  const std::uint32_t experts = experts_for(chosen, *config);
  if (experts < config->experts_per_token)
    return fail(errc::invalid_argument,
                fmt::format("--experts {}: a token takes {}", experts, config->experts_per_token));
  synthetic_layers layers(*config, experts, chosen.context);
  const auto kind = kind_of(layers, chosen.kind);
  if (!kind) return fail(kind.error());
  stream_memory evicting(evicting_bytes, stream_contents::codes);
  bench_report report = begin_report("layer", chosen.machine);
  report.settings["experts"] = std::to_string(experts);
  for (const std::uint32_t threads : threads_of(chosen.machine))
    if (const auto done = measure(chosen, layers, *kind, evicting, threads, report); !done)
      return done;
  if (chosen.machine.json) fmt::print("{}\n", to_json(report).dump(2));
  return {};
}

}  // namespace

void add_bench_layer(CLI::App& bench, int& exit_code) {
  CLI::App* command =
      bench.add_subcommand("layer", "One row in one layer, against the bytes that it must read");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  add_machine_options(*command, chosen->machine);
  command->add_option("--kind", chosen->kind,
                      "Layer, such as \"full, ratio 2\" (default: the first that reuses)");
  command
      ->add_option("--experts", chosen->experts,
                   "Routed experts in memory (default: all, or 64 if they do not fit)")
      ->check(CLI::Range(1U, 4096U));
  command->add_option("--context", chosen->context, "Positions of the request (default: 65536)");
  command->callback([chosen, &exit_code] {
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
