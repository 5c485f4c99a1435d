// `cedar bench context`: what one row costs by the length of its request, in each kind of layer.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <memory>

#include "tools/cedar/bench.hpp"
#include "tools/cedar/bench_ceilings.hpp"
#include "tools/cedar/bench_machine.hpp"
#include "tools/cedar/bench_plot.hpp"
#include "tools/cedar/bench_report.hpp"
#include "tools/cedar/pipeline.hpp"
#include "tools/cedar/synthetic_layers.hpp"

namespace cedar::tools {

namespace {

struct options {
  machine_options machine;
  std::vector<std::uint32_t> contexts{4096, 65536, 262144, 1048576};
  std::uint32_t experts = 16;
  std::filesystem::path svg;
};

constexpr std::size_t evicting_bytes = std::size_t{256} << 20;

/// Times of a layer with nothing of it in a cache.
result<spread> time_layer(synthetic_layers& layers, const kernels::backend& backend,
                          std::uint32_t layer, ceilings& limits, std::uint32_t threads,
                          std::uint32_t repeat) {
  std::vector<double> us;
  for (std::uint32_t round = 0; round <= repeat; ++round) {
    limits.read_sample(evicting_bytes);
    result<void> done;
    const double seconds = seconds_of(threads, [&] { done = layers.run(backend, layer); });
    if (!done) return fail(done.error());
    if (round > 0) us.push_back(seconds * 1e6);
  }
  return spread_of(std::move(us));
}

class context_bench {
 public:
  context_bench(const options& chosen, const model::model_config& config)
      : chosen_(chosen),
        layers_(config, std::min(chosen.experts, config.routed_experts), chosen.contexts.back()),
        kinds_(layers_.kinds()),
        evicting_(evicting_bytes, stream_contents::codes) {
    for (const layer_kind& kind : kinds_) lines_.push_back({kind.name, {}});
    lines_.push_back({fmt::format("all {} layers", config.layers), {}});
  }

  result<void> run(const kernels::backend& backend, std::uint32_t threads, bench_report& to) {
    ceilings limits(evicting_, threads, chosen_.machine.isa == "avx2");
    print_head(threads);
    for (const std::uint32_t context : chosen_.contexts) {
      if (const auto filled = layers_.fill(backend, context - 1); !filled) return filled;
      double all = 0;
      for (std::size_t i = 0; i < kinds_.size(); ++i) {
        const auto time =
            time_layer(layers_, backend, kinds_[i].layer, limits, threads, chosen_.machine.repeat);
        if (!time) return fail(time.error());
        add(to, lines_[i], context, *time, layers_.entries(kinds_[i].layer));
        all += time->median * kinds_[i].count;
      }
      add(to, lines_.back(), context, {1, all, all, all}, 0);
      print_line(context);
    }
    return {};
  }

  std::string svg(std::uint32_t threads) const {
    return to_svg({fmt::format("One row by the length of its request, {}", threads_text(threads)),
                   "positions", "microseconds", lines_});
  }

 private:
  void add(bench_report& to, plot_line& line, std::uint32_t context, const spread& time,
           std::uint32_t entries) {
    line.points.emplace_back(context, time.median);
    to.rows.push_back({fmt::format("{}, context {}", line.name, context),
                       time,
                       {{"context", context}, {"entries", entries}},
                       {}});
  }

  void print_head(std::uint32_t threads) const {
    if (chosen_.machine.json) return;
    fmt::print("microseconds of one row, {}\n{:>10}", threads_text(threads), "positions");
    for (const plot_line& line : lines_) fmt::print("{:>18}", line.name);
    fmt::print("\n{:>10}", "layers");
    for (const layer_kind& kind : kinds_) fmt::print("{:>18}", kind.count);
    fmt::print("\n");
  }
  void print_line(std::uint32_t context) const {
    if (chosen_.machine.json) return;
    fmt::print("{:>10}", context);
    for (const plot_line& line : lines_) fmt::print("{:>18.0f}", line.points.back().second);
    fmt::print("\n");
  }

  const options& chosen_;
  synthetic_layers layers_;
  std::vector<layer_kind> kinds_;
  stream_memory evicting_;
  std::vector<plot_line> lines_;  ///< a kind each, then all layers
};

result<void> write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) return fail(errc::io, "cannot write " + file.string());
  return {};
}

result<void> run(options chosen) {
  const auto config = config_of(chosen.machine);
  if (!config) return fail(config.error());
  std::ranges::sort(chosen.contexts);
  if (chosen.contexts.front() < 2 || chosen.contexts.back() > config->max_positions)
    return fail(errc::invalid_argument,
                fmt::format("--contexts: the model has 2 to {} positions", config->max_positions));
  if (chosen.experts < config->experts_per_token)
    return fail(errc::invalid_argument, fmt::format("--experts {}: a token takes {}",
                                                    chosen.experts, config->experts_per_token));
  const std::uint32_t threads = threads_of(chosen.machine).front();
  const auto backend = make_bench_backend(chosen.machine, threads);
  if (!backend) return fail(backend.error());
  bench_report report = begin_report("context", chosen.machine);
  report.settings["threads"] = std::to_string(threads);
  context_bench bench(chosen, *config);
  if (const auto done = bench.run(**backend, threads, report); !done) return done;
  if (chosen.machine.json) fmt::print("{}\n", to_json(report).dump(2));
  if (!chosen.svg.empty()) return write(chosen.svg, bench.svg(threads));
  return {};
}

}  // namespace

void add_bench_context(CLI::App& bench, int& exit_code) {
  CLI::App* command = bench.add_subcommand(
      "context", "One row by the length of its request, in each kind of layer");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  add_machine_options(*command, chosen->machine);
  command
      ->add_option("--contexts", chosen->contexts,
                   "Positions of the request (default: 4096,65536,262144,1048576)")
      ->delimiter(',');
  command->add_option("--experts", chosen->experts, "Routed experts in memory (default: 16)")
      ->check(CLI::Range(1U, 4096U));
  command->add_option("--svg", chosen->svg, "File to draw to");
  command->callback([chosen, &exit_code] {
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
