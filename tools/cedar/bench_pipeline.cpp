// `cedar bench pipeline`: the same decode in one process and through a topology, side by side.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "kernels/registry/registry.hpp"
#include "runtime/local/local_engine.hpp"
#include "tools/cedar/bench.hpp"
#include "tools/cedar/bench_rounds.hpp"
#include "tools/cedar/pipeline.hpp"
#include "tools/cedar/pipeline_times.hpp"
#include "tools/cedar/summary.hpp"
#include "topology/launch/cluster.hpp"

namespace cedar::tools {

namespace {

using nlohmann::ordered_json;

/// Far more than a run of a dozen edges and a thousand tokens records.
constexpr std::uint64_t trace_events_max = 1'000'000;
constexpr std::uint32_t rounds = 200;

struct options {
  std::filesystem::path topology;
  std::filesystem::path model;
  std::uint32_t tokens = 64;
  std::uint32_t prompt_tokens = 32;
  std::uint32_t repeat = 3;
  bool emulate_links = false;
  bool json = false;
};

/// One generation, timed from outside.
struct timed_run {
  std::vector<token_id> tokens;
  double first_us = 0;  ///< from the request to the first token
  std::vector<double> token_us;  ///< of each further token
};

result<timed_run> time_run(session::generator& generator,
                           const session::generation_request& request) {
  using clock = std::chrono::steady_clock;
  timed_run out;
  auto before = clock::now();
  session::generation_sink sink;
  sink.on_row = [&](std::size_t, const session::row_event& row) {
    if (row.in_prompt) return;
    const auto now = clock::now();
    const double us = std::chrono::duration<double, std::micro>(now - before).count();
    if (out.tokens.empty())
      out.first_us = us;
    else
      out.token_us.push_back(us);
    out.tokens.push_back(row.token);
    before = now;
  };
  if (const auto used = generator.generate({request}, sink); !used) return fail(used.error());
  return out;
}

/// All timed runs of one way to compute.
struct timed_runs {
  std::vector<double> first_us;
  std::vector<double> token_us;

  void add(const timed_run& run) {
    first_us.push_back(run.first_us);
    token_us.insert(token_us.end(), run.token_us.begin(), run.token_us.end());
  }
};

struct measured {
  timed_runs local;
  timed_runs through;
  pipeline_times times;
  std::optional<round_times> bare;  ///< if something crosses by UCX
};

/// Both ways give the same tokens, or it is not worth comparing them.
result<void> check_same(const timed_run& local, const timed_run& through, std::uint32_t number) {
  for (std::size_t i = 0; i < std::max(local.tokens.size(), through.tokens.size()); ++i) {
    const auto text = [i](const timed_run& run) {
      return i < run.tokens.size() ? std::to_string(run.tokens[i]) : std::string("missing");
    };
    if (text(local) != text(through))
      return fail(
          errc::mismatch,
          fmt::format("prompt {}: token {} is {} in one process and {} through the topology",
                      number, i, text(local), text(through)));
  }
  return {};
}

class pipeline_bench {
 public:
  explicit pipeline_bench(const options& chosen)
      : chosen_(chosen),
        cluster_({chosen.topology,
                  chosen.model,
                  std::filesystem::read_symlink("/proc/self/exe"),
                  trace_events_max,
                  {},
                  [](const std::string& what) { fmt::print(stderr, "cedar: {}\n", what); },
                  chosen.emulate_links,
                  session::draft_setting{}}) {}  // steps of one token each

  result<measured> run() {
    if (const auto started = cluster_.start(); !started) return fail(started.error());
    backend_ = kernels::make_backend("cpu");
    if (!backend_)
      return fail(errc::refused, "the cpu backend needs a processor with AVX2, FMA and F16C");
    const topology::limits_plan& limits = cluster_.topology().limits();
    auto engine = local::local_engine::open(cluster_.model(), *backend_,
                                            {limits.rows_per_step, 1, limits.context});
    if (!engine) return fail(engine.error());
    engine_ = std::move(*engine);

    measured out;
    // The first round of both pages the weights in; its times are not taken.
    for (std::uint32_t round = 0; round <= chosen_.repeat; ++round)
      if (const auto done = play(round, round == 0 ? nullptr : &out); !done)
        return fail(done.error());
    if (const auto done = measure_bare(out); !done) return fail(done.error());
    cluster_.stop();
    return out;
  }

  const topology::plan& plan() const { return cluster_.topology(); }
  const stage::model_source& model() const { return cluster_.model(); }

 private:
  result<void> play(std::uint32_t number, measured* out) {
    session::generation_request request;
    request.prompt =
        synthetic_prompt(chosen_.prompt_tokens, cluster_.model().config().vocabulary, number);
    request.new_tokens_max = chosen_.tokens;
    request.ignore_eos = true;
    const auto local = time_run(*engine_, request);
    if (!local) return fail(local.error());
    const auto through = time_run(cluster_, request);
    if (!through) return fail(through.error());
    if (const auto same = check_same(*local, *through, number); !same) return same;
    const auto reports = cluster_.reports();
    if (out == nullptr) return {};
    out->local.add(*local);
    out->through.add(*through);
    const std::uint32_t rows = plan().limits().rows_per_step;
    add_run(out->times, plan(), trace_of(reports), (chosen_.prompt_tokens + rows - 1) / rows);
    return {};
  }

  /// The transport alone, with the bytes that a decode step's hops carry; where all processes are
  /// of this host.
  result<void> measure_bare(measured& out) {
    const bool here = std::ranges::all_of(plan().nodes(), [](const topology::node_plan& node) {
      return node.start == topology::node_start::spawn;
    });
    if (out.times.hops.empty() || !here || plan().transport().kind != topology::transport_kind::ucx)
      return {};
    topology::step_shape decode_row;
    decode_row.requests = decode_row.rows = decode_row.decoder_rows = decode_row.wanted = 1;
    round_options round;
    round.rounds = rounds;
    const auto ucx = topology::ucx_options_of(plan(), plan().client().id);
    if (!ucx) return fail(ucx.error());
    round.ucx = *ucx;
    for (const topology::edge_plan& edge : plan().edges()) {
      if (!edge.crosses()) continue;
      const std::uint64_t bytes = edge.size.bytes(decode_row);
      if (edge.kind == topology::edge_kind::activation) round.there_bytes = bytes;
      if (edge.kind == topology::edge_kind::proposal) round.back_bytes = bytes;
    }
    auto times = measure_rounds(round);
    if (!times) return fail(times.error());
    out.bare = std::move(*times);
    return {};
  }

  const options& chosen_;
  topology::cluster cluster_;
  std::unique_ptr<kernels::backend> backend_;
  std::unique_ptr<local::local_engine> engine_;
};

/// What a hop costs, by medians.
struct hop_costs {
  double step_us = 0;
  double compute_us = 0;
  double between_us = 0;
  std::size_t hops = 0;
  /// (step - compute) / hops: everything that is not computing, put on the hops.
  std::optional<double> hop_us;
  /// From departure to the beginning of work on the hops alone: their mean.
  std::optional<double> delivery_us;
  std::optional<double> bare_us;  ///< half a round of the transport, both ends awake
  std::optional<double> bare_after_work_us;  ///< the same, both ends asleep and out of the caches

  explicit hop_costs(const measured& all)
      : step_us(median(all.times.step_us)),
        compute_us(median(all.times.compute_us)),
        between_us(median(all.times.between_us)),
        hops(all.times.hops.size()) {
    if (hops == 0) return;
    hop_us = between_us / static_cast<double>(hops);
    double sum = 0;
    for (const std::string& hop : all.times.hops)
      sum += median(all.times.edges.at(hop).delivery_us);
    delivery_us = sum / static_cast<double>(hops);
    if (!all.bare) return;
    bare_us = median(all.bare->awake_us) / 2;
    bare_after_work_us = median(all.bare->worked_us) / 2;
  }
};

ordered_json number(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

std::optional<double> difference(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b ? std::optional(*a - *b) : std::nullopt;
}

ordered_json edges_json(const pipeline_times& times) {
  ordered_json out = ordered_json::object();
  for (const auto& [name, edge] : times.edges) {
    if (edge.messages == 0) continue;
    std::optional<double> delivery;
    if (!edge.delivery_us.empty()) delivery = median(edge.delivery_us);
    out[name] = {{"crosses", edge.crosses},
                 {"messages", edge.messages},
                 {"bytes", edge.bytes},
                 {"credit_wait_us", edge.credit_wait_us},
                 {"delivery_us", number(delivery)}};
  }
  return out;
}

void print_json(const options& chosen, const std::string& model, const measured& all) {
  const hop_costs costs(all);
  const double local = median(all.local.token_us);
  const double through = median(all.through.token_us);
  ordered_json units = ordered_json::object();
  for (const auto& [name, unit] : all.times.units)
    units[name] = {{"compute_us", median(unit.compute_us)}};
  const ordered_json root{
      {"topology", chosen.topology.string()},
      {"emulated_links", chosen.emulate_links},
      {"model", model},
      {"prompt_tokens", chosen.prompt_tokens},
      {"tokens", chosen.tokens},
      {"repeat", chosen.repeat},
      {"same_tokens", true},
      {"one_process",
       {{"first_token_us", median(all.local.first_us)}, {"time_per_token_us", local}}},
      {"through_topology",
       {{"first_token_us", median(all.through.first_us)}, {"time_per_token_us", through}}},
      {"ratio", through / local},
      {"decode_step",
       {{"steps", all.times.step_us.size()},
        {"step_us", costs.step_us},
        {"compute_us", costs.compute_us},
        {"between_us", costs.between_us},
        {"between_percent", 100 * costs.between_us / costs.step_us}}},
      {"hop",
       {{"hops", all.times.hops},
        {"hop_us", number(costs.hop_us)},
        {"hop_percent",
         costs.hop_us ? ordered_json(100 * *costs.hop_us / costs.step_us) : ordered_json(nullptr)},
        {"delivery_us", number(costs.delivery_us)},
        {"transport", all.bare ? ordered_json(all.bare->transport) : ordered_json(nullptr)},
        {"bare_us", number(costs.bare_us)},
        {"bare_after_work_us", number(costs.bare_after_work_us)},
        {"beyond_us", number(difference(costs.hop_us, costs.bare_us))},
        {"beyond_after_work_us", number(difference(costs.hop_us, costs.bare_after_work_us))}}},
      {"edges", edges_json(all.times)},
      {"units", units}};
  fmt::print("{}\n", root.dump(2));
}

void print_hops(const hop_costs& costs, const measured& all) {
  if (!costs.hop_us) {
    fmt::print("\nno step crosses processes\n");
    return;
  }
  fmt::print("\n{} hops a step, us each\n", costs.hops);
  fmt::print("  {:<52}{:>10.1f}  {:.2f} % of a step\n", "all that is not computing, over the hops",
             *costs.hop_us, 100 * *costs.hop_us / costs.step_us);
  fmt::print("  {:<52}{:>10.1f}\n", "from departure to the beginning of work", *costs.delivery_us);
  if (!costs.bare_us) return;
  fmt::print("  {:<52}{:>10.1f}\n", "transport alone, ends awake, " + all.bare->transport,
             *costs.bare_us);
  fmt::print("  {:<52}{:>10.1f}\n", "transport alone, after work of the sender",
             *costs.bare_after_work_us);
  fmt::print("  {:<52}{:>10.1f}\n", "beyond the transport with ends awake",
             *costs.hop_us - *costs.bare_us);
  fmt::print("  {:<52}{:>10.1f}\n", "beyond the transport after work",
             *costs.hop_us - *costs.bare_after_work_us);
}

void print_text(const measured& all) {
  const hop_costs costs(all);
  const double local = median(all.local.token_us);
  const double through = median(all.through.token_us);
  fmt::print("the same tokens both ways; medians\n\n{:<20}{:>16}{:>16}\n", "", "first token ms",
             "next token ms");
  fmt::print("{:<20}{:>16.2f}{:>16.3f}\n", "one process", median(all.local.first_us) / 1e3,
             local / 1e3);
  fmt::print("{:<20}{:>16.2f}{:>16.3f}\n", "topology", median(all.through.first_us) / 1e3,
             through / 1e3);
  fmt::print("{:<20}{:>16.3f}{:>16.3f}\n", "ratio",
             median(all.through.first_us) / median(all.local.first_us), through / local);
  fmt::print(
      "\na decode step: {:.1f} us, computing {:.1f} us, between units {:.1f} us ({:.2f} %)\n",
      costs.step_us, costs.compute_us, costs.between_us, 100 * costs.between_us / costs.step_us);
  print_hops(costs, all);
  fmt::print("\n{:<44}{:>9}{:>12}{:>16}{:>13}\n", "edge (* crosses)", "messages", "bytes",
             "credit wait ms", "delivery us");
  for (const auto& [name, edge] : all.times.edges) {
    if (edge.messages == 0) continue;
    fmt::print("{:<44}{:>9}{:>12}{:>16.2f}{:>13}\n", name + (edge.crosses ? " *" : ""),
               edge.messages, edge.bytes, static_cast<double>(edge.credit_wait_us) / 1e3,
               edge.delivery_us.empty() ? "-" : fmt::format("{:.0f}", median(edge.delivery_us)));
  }
  fmt::print("\n{:<44}{:>21}\n", "unit", "compute us a step");
  for (const auto& [name, unit] : all.times.units)
    fmt::print("{:<44}{:>21.0f}\n", name, median(unit.compute_us));
}

result<void> run(const options& chosen) {
  pipeline_bench bench(chosen);
  const auto all = bench.run();
  if (!all) return fail(all.error());
  if (chosen.json)
    print_json(chosen, bench.model().folder().string(), *all);
  else
    print_text(*all);
  return {};
}

}  // namespace

void add_bench_pipeline(CLI::App& bench, int& exit_code) {
  CLI::App* command = bench.add_subcommand(
      "pipeline", "Decode in one process and through a topology; what a hop costs");
  const auto chosen = std::make_shared<options>();  // SHARED: with the callback, until app is gone
  CLI::Option* topology =
      command->add_option("--topology", chosen->topology, "Topology file")->required();
  add_emulate_links(*command, topology, chosen->emulate_links);
  command->add_option("-m,--model", chosen->model, "Checkpoint folder; overrides the topology's");
  command->add_option("--tokens", chosen->tokens, "Tokens to generate each time (default: 64)")
      ->check(CLI::Range(2U, 1U << 20));
  command
      ->add_option("--prompt-tokens", chosen->prompt_tokens, "Tokens of the prompt (default: 32)")
      ->check(CLI::Range(1U, 1U << 20));
  command
      ->add_option("--repeat", chosen->repeat,
                   "Rounds of both, after one that is not counted (default: 3)")
      ->check(CLI::Range(1U, 1000U));
  command->add_flag("--json", chosen->json, "Print one JSON object");
  command->callback([chosen, &exit_code] {
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
