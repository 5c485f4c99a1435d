// `cedar bench prefill`: what a prompt costs in one process, and where its time goes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/cedar/bench.hpp"
#include "tools/cedar/bench_breakdown.hpp"
#include "tools/cedar/bench_ceilings.hpp"
#include "tools/cedar/bench_report.hpp"
#include "tools/cedar/pipeline.hpp"
#include "tools/cedar/watched_model.hpp"

namespace cedar::tools {

namespace {

using session::prefill_mode;

struct options {
  std::filesystem::path model;
  std::uint32_t prompt_tokens = 512;
  std::uint32_t rows_per_step = 128;
  std::uint32_t threads = 1;
  std::uint32_t repeat = 3;
  std::vector<std::string> modes{"exact", "bounded"};
  bool json = false;
};

struct computed_prompt {
  double ms = 0;
  session::usage used;
};

result<computed_prompt> compute_prompt(local::local_engine& engine, std::vector<token_id> prompt,
                                       prefill_mode mode, std::uint32_t threads) {
  session::generation_request request;
  request.prompt = std::move(prompt);
  request.mode = mode;
  const double begin = seconds_now(threads);
  const auto used = engine.generate({request}, {});
  if (!used) return fail(used.error());
  return computed_prompt{(seconds_now(threads) - begin) * 1e3, used->front()};
}

/// What each mode took, in the order of the options.
struct measured {
  std::vector<spread> us;
  std::vector<double> ratios;  ///< to the first mode, medians of rounds
  std::vector<session::usage> used;  ///< every round's: rows follow from the prompt's length alone
  bench_report parts;  ///< breakdowns, a mode each
};

std::string prefix_of(const std::string& mode) {
  return "prompt, " + mode;
}

class prefill_bench {
 public:
  explicit prefill_bench(const options& chosen) : chosen_(chosen) {}

  result<void> open() {
    auto opened =
        watched_model::open(chosen_.model, chosen_.threads, {chosen_.rows_per_step, 1, 0});
    if (!opened) return fail(opened.error());
    model_ = std::move(*opened);
    return {};
  }

  /// The first round pages the weights in; its times are not taken. Modes take turns, so that what
  /// else the machine does falls on all of them.
  result<measured> run() {
    std::vector<std::vector<double>> times(chosen_.modes.size());
    std::vector<std::vector<double>> ratios(chosen_.modes.size());
    measured out;
    out.used.resize(chosen_.modes.size());
    for (std::uint32_t round = 0; round <= chosen_.repeat; ++round)
      for (std::size_t i = 0; i < chosen_.modes.size(); ++i) {
        const auto made = compute_prompt(*model_.plain, prompt(round), mode(i), chosen_.threads);
        if (!made) return fail(made.error());
        out.used[i] = made->used;
        if (round == 0) continue;
        times[i].push_back(made->ms * 1e3);
        ratios[i].push_back(times[i].back() / times[0].back());
      }
    for (std::size_t i = 0; i < chosen_.modes.size(); ++i) {
      out.us.push_back(spread_of(times[i]));
      out.ratios.push_back(median(ratios[i]));
      if (const auto done = watch(i, out.parts); !done) return fail(done.error());
    }
    return out;
  }

 private:
  /// The quickest of some watched runs, all on the wall: reading a thread's CPU time takes as long
  /// as a small operation.
  result<void> watch(std::size_t index, bench_report& to) {
    double least = INFINITY;
    bench_report quickest;
    for (std::uint32_t round = 0; round < chosen_.repeat; ++round) {
      model_.watched->reset();
      const auto made = compute_prompt(*model_.counted, prompt(round), mode(index), 0);
      if (!made) return fail(made.error());
      if (made->ms >= least) continue;
      least = made->ms;
      quickest = {};
      add_breakdown(quickest, prefix_of(chosen_.modes[index]), *model_.watched, {least * 1e-3, 1});
    }
    to.rows.insert(to.rows.end(), quickest.rows.begin(), quickest.rows.end());
    return {};
  }

  std::vector<token_id> prompt(std::uint32_t round) const {
    return synthetic_prompt(chosen_.prompt_tokens, model_.source->config().vocabulary, round);
  }
  prefill_mode mode(std::size_t index) const {
    return *session::prefill_mode_of(chosen_.modes[index]);
  }

  const options& chosen_;
  watched_model model_;
};

bench_report report_of(const options& chosen, const measured& found) {
  bench_report out{"prefill", machine_settings(), {}};
  out.settings.insert({{"model", chosen.model.string()},
                       {"prompt_tokens", std::to_string(chosen.prompt_tokens)},
                       {"rows_per_step", std::to_string(chosen.rows_per_step)},
                       {"threads", std::to_string(chosen.threads)}});
  for (std::size_t i = 0; i < chosen.modes.size(); ++i)
    out.rows.push_back({prefix_of(chosen.modes[i]),
                        found.us[i],
                        {{"rows", chosen.prompt_tokens},
                         {"encoder_rows", found.used[i].encoder_rows},
                         {"decoder_rows", found.used[i].decoder_rows},
                         {"ratio", found.ratios[i]}},
                        {}});
  out.rows.insert(out.rows.end(), found.parts.rows.begin(), found.parts.rows.end());
  return out;
}

void print(const options& chosen, const measured& found) {
  const bench_report report = report_of(chosen, found);
  nlohmann::ordered_json root = to_json(report);
  for (std::size_t i = 0; i < chosen.modes.size(); ++i) {
    const std::string& mode = chosen.modes[i];
    const double ms = found.us[i].median * 1e-3;
    const double rate = chosen.prompt_tokens * 1e3 / ms;
    const session::usage& used = found.used[i];
    root["modes"][mode] = {{"ms", ms},
                           {"tokens_per_second", rate},
                           {"ratio", found.ratios[i]},
                           {"encoder_rows", used.encoder_rows},
                           {"decoder_rows", used.decoder_rows}};
    if (!chosen.json)
      fmt::print(
          "{:<10}{:>12.1f} ms  +- {:.1f} %{:>12.0f} tokens/s{:>8.3f} of {:<8}"
          "rows: encoder {}, decoder {}\n",
          mode, ms, 100 * found.us[i].relative(), rate, found.ratios[i], chosen.modes[0],
          used.encoder_rows, used.decoder_rows);
  }
  if (chosen.json) {
    fmt::print("{}\n", root.dump(2));
    return;
  }
  for (const std::string& mode : chosen.modes) {
    fmt::print("\n");
    print_breakdown(report, prefix_of(mode), 0.01);
  }
}

result<void> run(const options& chosen) {
  prefill_bench bench(chosen);
  if (const auto opened = bench.open(); !opened) return opened;
  const auto found = bench.run();
  if (!found) return fail(found.error());
  print(chosen, *found);
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
  command->add_option("--threads", chosen->threads, "Threads that compute (default: 1)")
      ->check(CLI::Range(1U, 256U));
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
