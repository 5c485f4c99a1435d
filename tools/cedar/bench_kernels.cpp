// `cedar bench kernels`: every operation of the cpu backend against what this machine can do.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <regex>

#include "tools/cedar/bench.hpp"
#include "tools/cedar/bench_kernel_run.hpp"
#include "tools/cedar/bench_launches.hpp"
#include "tools/cedar/bench_machine.hpp"
#include "tools/cedar/pipeline.hpp"

namespace cedar::tools {

namespace {

struct options {
  machine_options machine;
  std::string only;
  double seconds = 0.5;
  std::size_t stream_mib = default_stream_bytes >> 20;
  case_sizes sizes;
  bool no_onednn = false;
  bool quick = false;
  bool list = false;
  bool count = false;
};

result<std::vector<kernel_case>> chosen_cases(const options& chosen,
                                              const model::model_config& config) {
  std::vector<kernel_case> out = kernel_cases(config, chosen.sizes);
  try {
    const std::regex only(chosen.only);
    std::erase_if(out,
                  [&](const kernel_case& each) { return !std::regex_search(each.name(), only); });
  } catch (const std::regex_error& problem) {
    return fail(errc::invalid_argument, "--only " + chosen.only + ": " + problem.what());
  }
  if (out.empty()) return fail(errc::invalid_argument, "--only " + chosen.only + " has no match");
  return out;
}

void print_limits(std::uint32_t threads, const ceilings& limits) {
  fmt::print("{}: reads {:.2f} GB/s ({}), multiply-adds {:.1f} GFLOP/s ({})\n",
             threads_text(threads), limits.best_read() * 1e-9, limits.reading(),
             limits.best_fma() * 1e-9, limits.multiplying());
}

void print_head() {
  fmt::print("{:<62}{:>12}{:>7}{:>9}{:>10}{:>8} {:<13}{:>8}\n", "operation", "time us", "+- %",
             "GB/s", "GFLOP/s", "share", "of", "oneDNN");
}

void print_row(const bench_row& row) {
  const auto number = [&](const char* name, int digits) {
    const auto found = row.numbers.find(name);
    return found == row.numbers.end() ? std::string("-")
                                      : fmt::format("{:.{}f}", found->second, digits);
  };
  const bool chooses = row.numbers.count("of_scoring") != 0;
  fmt::print("{:<62}{:>12.1f}{:>7.1f}{:>9}{:>10}{:>8} {:<13}{:>8}\n", row.name, row.time_us.median,
             100 * row.time_us.relative(), number("GBps", 2), number("GFLOPs", 1),
             number(chooses ? "of_scoring" : "share", 3),
             chooses ? "scoring" : row.words.at("bound"), number("other_ratio", 2));
  std::fflush(stdout);
}

std::unique_ptr<product_library> open_other(const options& chosen) {
  if (chosen.no_onednn) return nullptr;
  auto opened = product_library::open(product_module_path(), chosen.machine.isa == "avx2");
  if (opened) return std::move(*opened);
  fmt::print(stderr, "cedar: without oneDNN beside ours: {}\n", opened.error().message);
  return nullptr;
}

/// Of a choice among scores: what it adds to scoring as many keys, the case before it.
void compare_with_scoring(bench_row& choice, const std::vector<bench_row>& before) {
  const auto scoring = std::ranges::find_if(before.rbegin(), before.rend(), [](const auto& row) {
    return row.name.starts_with("index_scores ");
  });
  if (scoring == before.rend()) return;
  choice.numbers["of_scoring"] = choice.time_us.median / scoring->time_us.median;
}

/// Rows at one number of threads.
result<void> measure_all(const options& chosen, const std::vector<kernel_case>& cases,
                         std::uint32_t threads, bench_memory& memory, const product_library* other,
                         bench_report& to) {
  const auto backend = make_bench_backend(chosen.machine, threads);
  if (!backend) return fail(backend.error());
  ceilings limits(memory.stream(), threads, chosen.machine.isa == "avx2");
  const bool print = !chosen.machine.json;
  if (print) {
    print_limits(threads, limits);
    print_head();
  }
  for (const kernel_case& each : cases) {
    bench_row row = measure(
        each, {memory, limits, **backend, other, threads, chosen.seconds, chosen.machine.repeat});
    if (each.operation == "select_top_k") compare_with_scoring(row, to.rows);
    if (print) print_row(row);
    row.name += ", " + threads_text(threads);
    to.rows.push_back(std::move(row));
  }
  to.settings["reads, GB/s, " + threads_text(threads)] =
      fmt::format("{:.2f}", limits.best_read() * 1e-9);
  to.settings["multiply-adds, GFLOP/s, " + threads_text(threads)] =
      fmt::format("{:.1f}", limits.best_fma() * 1e-9);
  if (print) {
    print_limits(threads, limits);
    fmt::print("\n");
  }
  return {};
}

result<void> count(const options& chosen, const model::model_config& config) {
  const auto backend = make_bench_backend(chosen.machine, threads_of(chosen.machine).back());
  if (!backend) return fail(backend.error());
  const auto counted = count_launches(config, **backend, chosen.sizes.rows);
  if (!counted) return fail(counted.error());
  fmt::print("{}", launches_text(*counted));
  return {};
}

result<void> run(const options& chosen) {
  const auto config = config_of(chosen.machine);
  if (!config) return fail(config.error());
  if (chosen.count) return count(chosen, *config);
  const auto cases = chosen_cases(chosen, *config);
  if (!cases) return fail(cases.error());
  if (chosen.list) {
    for (const kernel_case& each : *cases) fmt::print("{}\n", each.name());
    return {};
  }
  bench_report report = begin_report("kernels", chosen.machine);
  bench_memory memory(chosen.stream_mib << 20);
  const auto other = open_other(chosen);
  for (const std::uint32_t threads : threads_of(chosen.machine))
    if (const auto done = measure_all(chosen, *cases, threads, memory, other.get(), report); !done)
      return done;
  if (chosen.machine.json) fmt::print("{}\n", to_json(report).dump(2));
  return {};
}

void make_quick(options& chosen) {
  chosen.seconds = 0.05;
  chosen.machine.repeat = 3;
  chosen.sizes.rows = {1, 64};
  chosen.sizes.entries = {4096, 65536};
}

}  // namespace

void add_bench_kernels(CLI::App& bench, int& exit_code) {
  CLI::App* command = bench.add_subcommand(
      "kernels", "Every operation at released shapes, against what this machine can do");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  add_machine_options(*command, chosen->machine);
  command->add_option("--only", chosen->only, "Only operations whose name matches this expression");
  command->add_option("--seconds", chosen->seconds, "Of each operation, about (default: 0.5)")
      ->check(CLI::Range(0.001, 60.0));
  CLI::Option* rows =
      command->add_option("--rows", chosen->sizes.rows, "Rows of a call (default: 1,64,512)")
          ->delimiter(',')
          ->check(CLI::Range(1U, 4096U));
  CLI::Option* entries =
      command
          ->add_option("--entries", chosen->sizes.entries,
                       "Entries of the global cache (default: 4096,65536,262144,1048576)")
          ->delimiter(',')
          ->check(CLI::Range(1U, 1U << 22));
  command
      ->add_option("--stream-mib", chosen->stream_mib,
                   "Memory that weights come from: several times what caches hold (default: 1024)")
      ->check(CLI::Range(4U, 1U << 16));
  command->add_flag("--no-onednn", chosen->no_onednn, "Without oneDNN's products beside ours");
  command->add_flag("--quick", chosen->quick, "1 and 64 rows, few keys, a tenth of the time")
      ->excludes(rows)
      ->excludes(entries);
  command->add_flag("--list", chosen->list, "Only names");
  command
      ->add_flag("--count", chosen->count,
                 "Nothing measured: kernels that layers would queue on a CUDA device, for one row "
                 "(decode) and 64 (prefill) or --rows")
      ->excludes("--only", "--entries", "--list", "--json");
  command->callback([chosen, rows, &exit_code] {
    if (chosen->quick) make_quick(*chosen);
    if (chosen->count && rows->count() == 0) chosen->sizes.rows = {1, 64};
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
