// `cedar bench prefill`: what a prompt costs, in one process.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "kernels/registry/registry.hpp"
#include "runtime/local/local_engine.hpp"
#include "tools/cedar/bench.hpp"
#include "tools/cedar/pipeline.hpp"

namespace cedar::tools {

namespace {

struct options {
  std::filesystem::path model;
  std::uint32_t prompt_tokens = 512;
  std::uint32_t rows_per_step = 128;
  std::uint32_t repeat = 3;
  bool json = false;
};

result<double> time_prompt(local::local_engine& engine, const std::vector<token_id>& prompt) {
  session::generation_request request;
  request.prompt = prompt;
  const auto begin = std::chrono::steady_clock::now();
  if (const auto used = engine.generate({request}, {}); !used) return fail(used.error());
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

result<void> run(const options& chosen) {
  const auto backend = kernels::make_backend("cpu");
  if (!backend)
    return fail(errc::refused, "the cpu backend needs a processor with AVX2, FMA and F16C");
  const auto source = stage::model_source::open(chosen.model);
  if (!source) return fail(source.error());
  const auto engine = local::local_engine::open(**source, *backend, {chosen.rows_per_step, 1, 0});
  if (!engine) return fail(engine.error());
  const std::uint32_t vocabulary = (*source)->config().vocabulary;
  std::vector<double> times;
  // The first one pages the weights in; its time is not taken.
  for (std::uint32_t round = 0; round <= chosen.repeat; ++round) {
    const auto ms =
        time_prompt(**engine, synthetic_prompt(chosen.prompt_tokens, vocabulary, round));
    if (!ms) return fail(ms.error());
    if (round > 0) times.push_back(*ms);
  }
  const double ms = median(times);
  const double per_second = chosen.prompt_tokens * 1e3 / ms;
  if (chosen.json) {
    const nlohmann::ordered_json line{{"model", chosen.model.string()},
                                      {"prompt_tokens", chosen.prompt_tokens},
                                      {"rows_per_step", chosen.rows_per_step},
                                      {"repeat", chosen.repeat},
                                      {"exact_ms", ms},
                                      {"exact_tokens_per_second", per_second}};
    fmt::print("{}\n", line.dump());
  } else {
    fmt::print("{} tokens, exact: {:.1f} ms, {:.0f} tokens/s (median of {})\n",
               chosen.prompt_tokens, ms, per_second, chosen.repeat);
  }
  return {};
}

}  // namespace

void add_bench_prefill(CLI::App& bench, int& exit_code) {
  CLI::App* command = bench.add_subcommand("prefill", "Compute prompts in one process");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  command->add_option("-m,--model", chosen->model, "Checkpoint folder")->required();
  command
      ->add_option("--prompt-tokens", chosen->prompt_tokens, "Tokens of the prompt (default: 512)")
      ->check(CLI::Range(1U, 1U << 20));
  command
      ->add_option("--rows-per-step", chosen->rows_per_step,
                   "Rows that one step computes (default: 128)")
      ->check(CLI::Range(1U, 65536U));
  command
      ->add_option("--repeat", chosen->repeat, "Times after one that is not counted (default: 3)")
      ->check(CLI::Range(1U, 1000U));
  command->add_flag("--json", chosen->json, "Print one JSON object");
  command->callback([chosen, &exit_code] {
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
