// `cedar bench prefill`: what a prompt costs, in one process.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/registry/registry.hpp"
#include "runtime/local/local_engine.hpp"
#include "tools/cedar/bench.hpp"
#include "tools/cedar/pipeline.hpp"

namespace cedar::tools {

namespace {

using session::prefill_mode;

struct options {
  std::filesystem::path model;
  std::uint32_t prompt_tokens = 512;
  std::uint32_t rows_per_step = 128;
  std::uint32_t repeat = 3;
  std::vector<std::string> modes{"exact", "bounded"};
  bool json = false;
};

result<double> time_prompt(local::local_engine& engine, std::vector<token_id> prompt,
                           prefill_mode mode) {
  session::generation_request request;
  request.prompt = std::move(prompt);
  request.mode = mode;
  const auto begin = std::chrono::steady_clock::now();
  if (const auto used = engine.generate({request}, {}); !used) return fail(used.error());
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// The median time of a prompt, a mode each, in the order of the options.
result<std::vector<double>> measure(const options& chosen) {
  const auto backend = kernels::make_backend("cpu");
  if (!backend)
    return fail(errc::refused, "the cpu backend needs a processor with AVX2, FMA and F16C");
  const auto source = stage::model_source::open(chosen.model);
  if (!source) return fail(source.error());
  const auto engine = local::local_engine::open(**source, *backend, {chosen.rows_per_step, 1, 0});
  if (!engine) return fail(engine.error());
  const std::uint32_t vocabulary = (*source)->config().vocabulary;
  std::vector<std::vector<double>> times(chosen.modes.size());
  // The first round pages the weights in; its times are not taken. Modes take turns, so that what
  // else the machine does falls on all of them.
  for (std::uint32_t round = 0; round <= chosen.repeat; ++round)
    for (std::size_t i = 0; i < chosen.modes.size(); ++i) {
      const auto ms =
          time_prompt(**engine, synthetic_prompt(chosen.prompt_tokens, vocabulary, round),
                      *session::prefill_mode_of(chosen.modes[i]));
      if (!ms) return fail(ms.error());
      if (round > 0) times[i].push_back(*ms);
    }
  std::vector<double> out;
  for (const std::vector<double>& mode : times) out.push_back(median(mode));
  return out;
}

void print(const options& chosen, const std::vector<double>& ms) {
  nlohmann::ordered_json root{{"model", chosen.model.string()},
                              {"prompt_tokens", chosen.prompt_tokens},
                              {"rows_per_step", chosen.rows_per_step},
                              {"repeat", chosen.repeat}};
  for (std::size_t i = 0; i < ms.size(); ++i) {
    const std::string& mode = chosen.modes[i];
    const double ratio = ms[i] / ms[0];
    root["modes"][mode] = {
        {"ms", ms[i]}, {"tokens_per_second", chosen.prompt_tokens * 1e3 / ms[i]}, {"ratio", ratio}};
    if (!chosen.json)
      fmt::print("{:<10}{:>12.1f} ms{:>12.0f} tokens/s{:>8.3f} of {}\n", mode, ms[i],
                 chosen.prompt_tokens * 1e3 / ms[i], ratio, chosen.modes[0]);
  }
  if (chosen.json) fmt::print("{}\n", root.dump(2));
}

result<void> run(const options& chosen) {
  const auto ms = measure(chosen);
  if (!ms) return fail(ms.error());
  print(chosen, *ms);
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
  command
      ->add_option("--modes", chosen->modes,
                   "Modes to compare, separated by commas (default: exact,bounded)")
      ->delimiter(',')
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(session::prefill_mode_names),
                                                     std::end(session::prefill_mode_names))));
  command->add_flag("--json", chosen->json, "Print one JSON object");
  command->callback([chosen, &exit_code] {
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
