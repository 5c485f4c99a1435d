// `cedar bench spec`: what drafting is worth, by the number of requests that run together.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "kernels/registry/registry.hpp"
#include "runtime/local/local_engine.hpp"
#include "runtime/session/draft_setting.hpp"
#include "runtime/text/prompt_encoding.hpp"
#include "runtime/text/tokenizer.hpp"
#include "tools/cedar/bench.hpp"
#include "tools/cedar/pipeline.hpp"
#include "tools/cedar/sampling_arguments.hpp"
#include "topology/launch/cluster.hpp"

namespace cedar::tools {

namespace {

using nlohmann::ordered_json;
using session::draft_setting;

struct options {
  std::filesystem::path model;
  std::filesystem::path topology;  ///< empty: one process
  bool emulate_links = false;
  std::vector<std::uint32_t> batches{1, 4, 16};
  std::vector<std::string> drafts;
  sampling_arguments sampling;
  std::uint32_t tokens = 64;
  std::uint32_t repeat = 5;
  std::uint32_t threads = 1;
  bool json = false;
};

/// Openings of tales: what drafts are worth depends on text, and random tokens are none.
constexpr const char* openings[] = {
    "Once upon a time, there was a little girl named Lily.",
    "Once upon a time, there was a small mouse who lived under the stairs.",
    "One day, a boy named Tom went to the park with his mother.",
    "There was once an old man who had three sons.",
    "In a green forest there lived a clever fox.",
    "One afternoon, Sara and her friend Ben found a box in the garden.",
    "Long ago, a king had a beautiful daughter.",
    "A dog named Max liked to run by the river.",
    "Every morning, the baker made bread for the whole village.",
    "Anna had a red ball, and she played with it every day.",
    "A bird sat on a high branch and sang.",
    "It was a cold day, and the snow lay deep on the hills.",
    "Grandmother told the children a story about a brave rabbit.",
    "The sun was warm, and two friends walked along the beach.",
    "A farmer had a cat, a cow and a very loud rooster.",
    "Once there was a bear who could not sleep.",
};

/// A way to decode.
struct variant {
  std::string name;
  std::unique_ptr<session::generator> generator;
};

/// Answers to a batch of prompts.
struct timed_batch {
  std::vector<std::vector<token_id>> tokens;
  double tokens_per_second = 0;  ///< from when every answer has begun until the first one ends
  std::uint64_t steps = 0;  ///< of all answers together, after their first tokens
  std::uint64_t verified = 0;
  std::uint64_t accepted = 0;
};

result<timed_batch> time_batch(session::generator& generator,
                               const std::vector<session::generation_request>& requests) {
  using clock = std::chrono::steady_clock;
  timed_batch out;
  out.tokens.resize(requests.size());
  std::size_t begun = 0;
  bool ended = false;
  std::optional<clock::time_point> begin;
  clock::time_point end;
  std::uint64_t counted = 0;
  session::generation_sink sink;
  sink.on_row = [&](std::size_t index, const session::row_event& row) {
    if (row.in_prompt) return;
    if (out.tokens[index].empty()) ++begun;
    out.tokens[index].push_back(row.token);
    if (begun < requests.size() || ended) return;
    ended = out.tokens[index].size() == requests[index].new_tokens_max;
    end = clock::now();
    if (begin)
      ++counted;
    else
      begin = end;
  };
  const auto used = generator.generate(requests, sink);
  if (!used) return fail(used.error());
  for (const session::usage& one : *used) {
    out.verified += one.drafted_tokens;
    out.accepted += one.accepted_tokens;
    out.steps += one.completion_tokens - 1 - one.accepted_tokens;
  }
  const double seconds = std::chrono::duration<double>(end - *begin).count();
  out.tokens_per_second = static_cast<double>(counted) / seconds;
  return out;
}

/// One variant's rounds of a batch.
struct measured {
  std::vector<double> tokens_per_second;
  std::vector<double> ratios;  ///< to the plain run of the same round
  std::uint64_t steps = 0;
  std::uint64_t verified = 0;
  std::uint64_t accepted = 0;

  void add(const timed_batch& run, double plain) {
    tokens_per_second.push_back(run.tokens_per_second);
    ratios.push_back(run.tokens_per_second / plain);
    steps += run.steps;
    verified += run.verified;
    accepted += run.accepted;
  }
  /// Tokens that a request makes in a step.
  double acceptance_length() const {
    return 1 + static_cast<double>(accepted) / static_cast<double>(steps);
  }
  double verified_length() const {
    return static_cast<double>(verified) / static_cast<double>(steps);
  }
};

class spec_bench {
 public:
  explicit spec_bench(const options& chosen)
      : chosen_(chosen), sampling_(with_seed(chosen.sampling)) {}

  result<void> open() {
    if (chosen_.topology.empty())
      if (const auto opened = open_local(); !opened) return opened;
    if (const auto plain = add_variant({}); !plain) return plain;
    if (const auto read = read_prompts(); !read) return read;
    if (chosen_.drafts.empty()) {
      const std::uint32_t block = model().config().dspark.block_size;
      for (const std::uint32_t tokens : std::set{1U, (block + 1) / 2, block})
        if (const auto added = add_variant({tokens}); !added) return added;
      return add_variant({.automatic = true});
    }
    for (const std::string& text : chosen_.drafts) {
      const auto setting = session::draft_setting_of(text);
      if (!setting) return fail(setting.error().with("--draft " + text));
      if (const auto added = add_variant(*setting); !added) return added;
    }
    return {};
  }

  /// All variants side by side, in the order of variants().
  result<std::vector<measured>> run(std::uint32_t batch) {
    std::vector<measured> out(variants_.size());
    // The first round pages weights in and teaches `auto`; its times are not taken.
    for (std::uint32_t round = 0; round <= chosen_.repeat; ++round) {
      const auto requests = requests_of(batch, round);
      std::vector<timed_batch> runs;
      for (variant& one : variants_) {
        auto ran = time_batch(*one.generator, requests);
        if (!ran) return fail(ran.error().with(one.name));
        if (!runs.empty() && ran->tokens != runs.front().tokens)
          return fail(errc::mismatch, one.name + " gives other tokens than plain decoding");
        runs.push_back(std::move(*ran));
      }
      for (std::size_t i = 0; round > 0 && i < runs.size(); ++i)
        out[i].add(runs[i], runs.front().tokens_per_second);
    }
    return out;
  }

  const std::vector<variant>& variants() const noexcept { return variants_; }
  /// Of the first request; each has a seed of its own.
  const flow::sampling_options& sampling() const noexcept { return sampling_; }

 private:
  const stage::model_source& model() const { return source_ ? *source_ : cluster_->model(); }

  result<void> open_local() {
    if (chosen_.model.empty())
      return fail(errc::invalid_argument, "give a model (-m DIR) or a topology (--topology FILE)");
    backend_ = kernels::make_backend("cpu", {chosen_.threads});
    if (!backend_)
      return fail(errc::refused, "the cpu backend needs a processor with AVX2, FMA and F16C");
    auto source = stage::model_source::open(chosen_.model);
    if (!source) return fail(source.error());
    source_ = std::move(*source);
    return {};
  }

  result<void> read_prompts() {
    const auto tokenizer = text::tokenizer::load(model().folder() / "tokenizer.json");
    if (!tokenizer) return fail(tokenizer.error());
    for (const char* opening : openings) {
      auto tokens = text::tokenize(*tokenizer, text::continuation_prompt(opening));
      if (!tokens) return fail(tokens.error());
      prompts_.push_back(std::move(*tokens));
    }
    return {};
  }

  result<void> add_variant(const draft_setting& setting) {
    const std::string name = to_string(setting);
    auto made = chosen_.topology.empty() ? local_generator(setting) : cluster_of(setting);
    if (!made) return fail(made.error().with("--draft " + name));
    variants_.push_back({name, std::move(*made)});
    return {};
  }

  std::uint32_t most_requests() const { return *std::ranges::max_element(chosen_.batches); }

  result<std::unique_ptr<session::generator>> local_generator(const draft_setting& setting) const {
    const std::uint32_t rows = most_requests() * (1 + source_->config().dspark.block_size);
    local::engine_options with{.rows_per_step = std::max(128U, rows),
                               .requests_max = most_requests()};
    with.draft_tokens = setting.tokens;
    with.draft_policy = setting.automatic;
    auto made = local::local_engine::open(*source_, *backend_, with);
    if (!made) return fail(made.error());
    if (const auto measured = (*made)->measure_costs(); !measured) return fail(measured.error());
    return std::move(*made);
  }

  /// Processes of its own.
  result<std::unique_ptr<session::generator>> cluster_of(const draft_setting& setting) {
    topology::cluster_options with;
    with.topology = chosen_.topology;
    with.model = chosen_.model;
    with.program = std::filesystem::read_symlink("/proc/self/exe");
    with.emulate_links = chosen_.emulate_links;
    with.draft = setting;
    with.on_notice = [](const std::string& what) { fmt::print(stderr, "cedar: {}\n", what); };
    auto made = std::make_unique<topology::cluster>(with);
    if (const auto started = made->start(); !started) return fail(started.error());
    const std::uint32_t requests = made->topology().limits().requests;
    if (most_requests() > requests)
      return fail(errc::invalid_argument,
                  fmt::format("a batch of {} is beyond the {} requests of the topology; lower "
                              "--batch or raise limits.requests",
                              most_requests(), requests));
    if (cluster_ == nullptr) cluster_ = made.get();
    return made;
  }

  std::vector<session::generation_request> requests_of(std::uint32_t batch,
                                                       std::uint32_t round) const {
    std::vector<session::generation_request> out(batch);
    for (std::uint32_t i = 0; i < batch; ++i) {
      out[i].prompt = prompts_[(std::size_t{round} * batch + i) % prompts_.size()];
      out[i].new_tokens_max = chosen_.tokens;
      out[i].ignore_eos = true;
      out[i].sampling = sampling_;
      out[i].sampling.seed += std::uint64_t{round} * batch + i;
    }
    return out;
  }

  const options& chosen_;
  flow::sampling_options sampling_;
  std::unique_ptr<kernels::backend> backend_;
  std::unique_ptr<stage::model_source> source_;
  const topology::cluster* cluster_ = nullptr;  ///< the first variant's
  std::vector<std::vector<token_id>> prompts_;
  std::vector<variant> variants_;
};

ordered_json json_of(const measured& one) {
  return {{"tokens_per_second", median(one.tokens_per_second)},
          {"ratio", median(one.ratios)},
          {"acceptance_length", one.acceptance_length()},
          {"verified_length", one.verified_length()}};
}

void print(std::uint32_t batch, const std::vector<variant>& variants,
           const std::vector<measured>& all) {
  fmt::print("batch {}\n{:<12}{:>12}{:>12}{:>18}{:>20}\n", batch, "draft", "tokens/s", "of plain",
             "tokens a step", "verified a step");
  for (std::size_t i = 0; i < all.size(); ++i)
    fmt::print("{:<12}{:>12.0f}{:>12.3f}{:>18.2f}{:>20.2f}\n", variants[i].name,
               median(all[i].tokens_per_second), median(all[i].ratios), all[i].acceptance_length(),
               all[i].verified_length());
}

result<void> run(const options& chosen) {
  spec_bench bench(chosen);
  if (const auto opened = bench.open(); !opened) return opened;
  ordered_json root{{"model", chosen.model.string()},
                    {"topology", chosen.topology.string()},
                    {"emulated_links", chosen.emulate_links},
                    {"tokens", chosen.tokens},
                    {"temperature", bench.sampling().temperature},
                    {"seed", bench.sampling().seed},
                    {"repeat", chosen.repeat},
                    {"batches", ordered_json::array()}};
  if (!chosen.json && bench.sampling().temperature > 0)
    fmt::print("temperature {}, seed {}\n", bench.sampling().temperature, bench.sampling().seed);
  for (const std::uint32_t batch : chosen.batches) {
    const auto all = bench.run(batch);
    if (!all) return fail(all.error().with(fmt::format("batch {}", batch)));
    ordered_json variants = ordered_json::object();
    for (std::size_t i = 0; i < all->size(); ++i)
      variants[bench.variants()[i].name] = json_of((*all)[i]);
    root["batches"].push_back({{"batch", batch}, {"draft", variants}});
    if (!chosen.json) print(batch, bench.variants(), *all);
  }
  if (chosen.json) fmt::print("{}\n", root.dump(2));
  return {};
}

}  // namespace

void add_bench_spec(CLI::App& bench, int& exit_code) {
  CLI::App* command =
      bench.add_subcommand("spec", "Decode plain and with drafts; what drafting is worth");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  command->add_option("-m,--model", chosen->model, "Checkpoint folder; overrides the topology's");
  CLI::Option* topology = command->add_option("--topology", chosen->topology,
                                              "Topology file with a drafter; else one process");
  add_emulate_links(*command, topology, chosen->emulate_links);
  command
      ->add_option("--batch", chosen->batches,
                   "Requests that run together, separated by commas (default: 1,4,16)")
      ->delimiter(',')
      ->check(CLI::Range(1U, 1024U));
  command
      ->add_option("--draft", chosen->drafts,
                   "Settings to compare with off, separated by commas (default: some of fixed:K, "
                   "and auto)")
      ->delimiter(',');
  add_sampling_options(*command, chosen->sampling);
  command->add_option("--tokens", chosen->tokens, "Tokens of each answer (default: 64)")
      ->check(CLI::Range(2U, 1U << 20));
  command->add_option("--threads", chosen->threads, "Threads that compute (default: 1)")
      ->check(CLI::Range(1U, 256U))
      ->excludes(topology);
  command
      ->add_option("--repeat", chosen->repeat,
                   "Rounds of all settings, after one that is not counted (default: 5)")
      ->check(CLI::Range(1U, 1000U));
  command->add_flag("--json", chosen->json, "Print one JSON object");
  command->callback([chosen, &exit_code] {
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
