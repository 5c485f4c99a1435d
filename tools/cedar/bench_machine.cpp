#include "tools/cedar/bench_machine.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "kernels/registry/registry.hpp"
#include "tools/cedar/bench_report.hpp"
#include "tools/cedar/embedded.hpp"

namespace cedar::tools {

void add_machine_options(CLI::App& command, machine_options& options) {
  command.add_option("--like", options.like,
                     "Checkpoint folder or config.json whose shapes to take (default: released)");
  command.add_option("--threads", options.threads, "Numbers of threads (default: 1 and all)")
      ->delimiter(',')
      ->check(CLI::Range(1U, 256U));
  command.add_option("--isa", options.isa, "best, or avx2: nothing better (default: best)")
      ->check(CLI::IsMember({"best", "avx2"}));
  command.add_option("--repeat", options.repeat, "Rounds of each at least (default: 5)")
      ->check(CLI::Range(1U, 300U));
  command.add_flag("--json", options.json, "Print one JSON object");
}

result<model::model_config> config_of(const machine_options& chosen) {
  if (!chosen.like.empty()) return model::parse_config(chosen.like);
  const auto read = model::read_config_text({released_config, "the released configuration"});
  if (!read.config) return fail(read.code, read.errors.front());
  return *read.config;
}

std::vector<std::uint32_t> threads_of(const machine_options& chosen) {
  if (!chosen.threads.empty()) return chosen.threads;
  const std::uint32_t all = std::max(1U, std::thread::hardware_concurrency());
  return all == 1 ? std::vector<std::uint32_t>{1} : std::vector<std::uint32_t>{1, all};
}

result<std::unique_ptr<kernels::backend>> make_bench_backend(const machine_options& chosen,
                                                             std::uint32_t threads) {
  if (chosen.isa == "avx2") keep_to_avx2();
  auto made = kernels::make_backend("cpu", {threads});
  if (!made)
    return fail(errc::refused, "the cpu backend needs a processor with AVX2, FMA and F16C");
  return made;
}

bench_report begin_report(std::string kind, const machine_options& chosen) {
  bench_report out{std::move(kind), machine_settings(), {}};
  out.settings["like"] = chosen.like.empty() ? "released" : chosen.like.string();
  out.settings["isa"] = chosen.isa;
  return out;
}

std::string threads_text(std::uint32_t threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

}  // namespace cedar::tools
