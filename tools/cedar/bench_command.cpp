// `cedar bench`: measures this machine with this program.
#include <CLI/CLI.hpp>
#include <random>

#include "tools/cedar/bench.hpp"
#include "tools/cedar/commands.hpp"

namespace cedar::tools {

std::vector<token_id> synthetic_prompt(std::uint32_t count, std::uint32_t vocabulary,
                                       std::uint64_t number) {
  constexpr std::uint32_t special = 16;
  const std::uint32_t first = vocabulary > 2 * special ? special : 0;
  std::mt19937_64 random(number);
  std::vector<token_id> out(count);
  for (token_id& token : out)
    token = static_cast<token_id>(first + random() % (vocabulary - first));
  return out;
}

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* bench = app.add_subcommand(
      "bench", "Measure kernels, pipelines, prefill, drafts, servers and transport");
  bench->require_subcommand(1);
  add_bench_compare(*bench, exit_code);
  add_bench_context(*bench, exit_code);
  add_bench_decode(*bench, exit_code);
  add_bench_kernels(*bench, exit_code);
  add_bench_layer(*bench, exit_code);
  add_bench_pipeline(*bench, exit_code);
  add_bench_prefill(*bench, exit_code);
  add_bench_serve(*bench, exit_code);
  add_bench_spec(*bench, exit_code);
  add_bench_transport(*bench, exit_code);
}

}  // namespace cedar::tools
