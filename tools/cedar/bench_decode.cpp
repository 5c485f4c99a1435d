// `cedar bench decode`: tokens of a whole model in one process, and where their time goes.
//
// The engine computes on one thread, so plain times are that thread's CPU time, unless the backend
// divides calls among several: then they are those on the wall. Watched ones always are: reading a
// thread's CPU time takes as long as a small operation.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "tools/cedar/bench.hpp"
#include "tools/cedar/bench_breakdown.hpp"
#include "tools/cedar/bench_ceilings.hpp"
#include "tools/cedar/bench_report.hpp"
#include "tools/cedar/pipeline.hpp"
#include "tools/cedar/watched_model.hpp"

namespace cedar::tools {

namespace {

struct options {
  std::filesystem::path model;
  std::uint32_t prompt_tokens = 32;
  std::uint32_t tokens = 64;
  std::uint32_t requests = 1;
  std::uint32_t threads = 1;
  std::uint32_t repeat = 5;
  bool json = false;
};

/// One answer to each request.
struct timed_answers {
  double first_token = 0;  ///< seconds until all answers have begun
  double decoding = 0;  ///< from there to the last token
  std::uint32_t steps = 0;  ///< of decoding
  std::vector<std::vector<token_id>> tokens;
};

result<timed_answers> generate(local::local_engine& engine, const options& chosen,
                               std::uint32_t vocabulary, std::uint64_t number,
                               timed_backend* watched) {
  std::vector<session::generation_request> requests(chosen.requests);
  for (std::uint32_t i = 0; i < chosen.requests; ++i) {
    requests[i].prompt =
        synthetic_prompt(chosen.prompt_tokens, vocabulary, number * chosen.requests + i);
    requests[i].new_tokens_max = chosen.tokens;
    requests[i].ignore_eos = true;
  }
  const std::uint32_t clock = watched == nullptr ? chosen.threads : 0;  // on the wall
  timed_answers out;
  out.tokens.resize(chosen.requests);
  std::size_t begun = 0;
  const double begin = seconds_now(clock);
  double first = begin;
  session::generation_sink sink;
  sink.on_row = [&](std::size_t index, const session::row_event& row) {
    if (row.in_prompt) return;
    if (out.tokens[index].empty() && ++begun == chosen.requests) {
      first = seconds_now(clock);
      if (watched != nullptr) watched->reset();
    }
    out.tokens[index].push_back(row.token);
  };
  if (const auto used = engine.generate(requests, sink); !used) return fail(used.error());
  const double end = seconds_now(clock);
  out.first_token = first - begin;
  out.decoding = end - first;
  out.steps = chosen.tokens - 1;
  return out;
}

class decode_bench {
 public:
  explicit decode_bench(const options& chosen) : chosen_(chosen) {}

  result<void> open() {
    auto opened = watched_model::open(
        chosen_.model, chosen_.threads,
        {.rows_per_step = std::max(128U, chosen_.requests), .requests_max = chosen_.requests});
    if (!opened) return fail(opened.error());
    model_ = std::move(*opened);
    return {};
  }

  /// Plain runs and watched ones take turns; the first of each is not counted. The breakdown is
  /// that of the quickest.
  result<bench_report> run() {
    bench_report report{"decode", machine_settings(), {}};
    report.settings.insert({{"model", chosen_.model.string()},
                            {"prompt_tokens", std::to_string(chosen_.prompt_tokens)},
                            {"tokens", std::to_string(chosen_.tokens)},
                            {"requests", std::to_string(chosen_.requests)},
                            {"threads", std::to_string(chosen_.threads)}});
    std::vector<double> first_us, step_us, watched_us;
    bench_report parts;
    double inside = 0;
    const std::uint32_t vocabulary = model_.source->config().vocabulary;
    for (std::uint32_t round = 0; round <= chosen_.repeat; ++round) {
      const auto plain = generate(*model_.plain, chosen_, vocabulary, round, nullptr);
      if (!plain) return fail(plain.error());
      const auto counted =
          generate(*model_.counted, chosen_, vocabulary, round, model_.watched.get());
      if (!counted) return fail(counted.error());
      if (counted->tokens != plain->tokens)
        return fail(errc::mismatch, "a backend that is watched gives other tokens");
      if (round == 0) continue;
      first_us.push_back(plain->first_token * 1e6);
      step_us.push_back(plain->decoding * 1e6 / plain->steps);
      watched_us.push_back(counted->decoding * 1e6 / counted->steps);
      if (watched_us.back() > std::ranges::min(watched_us)) continue;
      parts = {};
      inside = add_breakdown(parts, "decode step", *model_.watched,
                             {counted->decoding, static_cast<double>(counted->steps)});
    }
    add_times(report, std::move(first_us), std::move(step_us), std::move(watched_us), inside);
    report.rows.insert(report.rows.end(), parts.rows.begin(), parts.rows.end());
    return report;
  }

 private:
  void add_times(bench_report& to, std::vector<double> first, std::vector<double> step,
                 std::vector<double> watched, double inside) const {
    to.rows.push_back({"time to first token", spread_of(std::move(first)), {}, {}});
    const spread one = spread_of(std::move(step));
    to.rows.push_back({"decode step, plain",
                       one,
                       {{"rows", chosen_.requests},
                        {"tokens_per_second", chosen_.requests * 1e6 / one.median},
                        {"share_in_operations", inside}},
                       {}});
    to.rows.push_back({"decode step, watched", spread_of(std::move(watched)), {}, {}});
  }

  const options& chosen_;
  watched_model model_;
};

void print(const bench_report& report) {
  for (const bench_row& row : report.rows)
    if (!row.name.starts_with("decode step: "))
      fmt::print("{:<24}{:>12.1f} us  +- {:.1f} %\n", row.name, row.time_us.median,
                 100 * row.time_us.relative());
  const auto& numbers = report.rows[1].numbers;
  fmt::print("{:.1f} tokens/s; {:.1f} % of a step in operations\n\n",
             numbers.at("tokens_per_second"), 100 * numbers.at("share_in_operations"));
  print_breakdown(report, "decode step", 0.005);
}

result<void> run(const options& chosen) {
  decode_bench bench(chosen);
  if (const auto opened = bench.open(); !opened) return opened;
  const auto report = bench.run();
  if (!report) return fail(report.error());
  if (chosen.json)
    fmt::print("{}\n", to_json(*report).dump(2));
  else
    print(*report);
  return {};
}

}  // namespace

void add_bench_decode(CLI::App& bench, int& exit_code) {
  CLI::App* command =
      bench.add_subcommand("decode", "Tokens in one process: how fast, and where their time goes");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  command->add_option("-m,--model", chosen->model, "Checkpoint folder")->required();
  command->add_option("--prompt-tokens", chosen->prompt_tokens, "Tokens of a prompt (default: 32)")
      ->check(CLI::Range(1U, 1U << 20));
  command->add_option("--tokens", chosen->tokens, "Tokens of an answer (default: 64)")
      ->check(CLI::Range(2U, 1U << 20));
  command
      ->add_option("--requests", chosen->requests,
                   "Requests that run together: rows of a step (default: 1)")
      ->check(CLI::Range(1U, 1024U));
  command->add_option("--threads", chosen->threads, "Threads that compute (default: 1)")
      ->check(CLI::Range(1U, 256U));
  command
      ->add_option("--repeat", chosen->repeat, "Rounds after one that is not counted (default: 5)")
      ->check(CLI::Range(1U, 1000U));
  command->add_flag("--json", chosen->json, "Print one JSON object");
  command->callback([chosen, &exit_code] {
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
