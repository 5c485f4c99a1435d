#include "tools/cedar/pipeline.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "kernels/registry/registry.hpp"
#include "tools/cedar/summary.hpp"
#include "topology/launch/cluster_service.hpp"
#include "topology/launch/node_runtime.hpp"
#include "topology/plan/render.hpp"

namespace cedar::tools {

namespace {

constexpr std::uint32_t default_rows_per_step = 128;

/// Enough for a long answer through a dozen edges; later events are counted, not kept.
constexpr std::uint64_t trace_events_max = 1'000'000;

tl::unexpected<error> cannot_write(const std::filesystem::path& trace) {
  return fail(errc::io, "cannot write the trace to " + trace.string());
}

std::filesystem::path own_program() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

}  // namespace

void add_emulate_links(CLI::App& command, CLI::Option* topology, bool& to) {
  command
      .add_flag("--emulate-links", to,
                "Impose latency, bandwidth, jitter and loss as the topology's 'links' say")
      ->needs(topology);
}

void add_pipeline_options(CLI::App& command, pipeline_options& options) {
  command.add_option("-m,--model", options.model, "Checkpoint folder; overrides the topology's");
  CLI::Option* topology = command.add_option(
      "--topology", options.topology, "Topology file: run through actors, as it places them");
  command.add_option("--backend", options.backend, "cpu or reference")
      ->check(CLI::IsMember({"cpu", "reference"}))
      ->excludes(topology);
  command.add_option("--threads", options.threads, "Threads that compute")
      ->check(CLI::Range(1U, 256U))
      ->excludes(topology);
  command
      .add_option("--mode", options.mode,
                  "exact: every row walks every layer; bounded: of a prompt only its last window "
                  "walks the decoder; halo: so many rows more that the answer is that of exact "
                  "(default: the topology's, else exact)")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(session::prefill_mode_names),
                                                     std::end(session::prefill_mode_names))));
  command
      .add_option("--rows-per-step", options.rows_per_step,
                  "Rows that one step computes (default: 128)")
      ->check(CLI::Range(1U, 65536U))
      ->excludes(topology);
  command
      .add_option("--prefix-positions", options.prefix_positions,
                  "Positions of KV that are kept for prompts that begin alike (default: 0)")
      ->excludes(topology);
  add_emulate_links(command, topology, options.emulate_links);
  command.add_flag("--verbose", options.verbose, "Print progress and the plan")->needs(topology);
  command.add_option("--trace", options.trace, "Write a Chrome/Perfetto trace to this file")
      ->needs(topology);
  command.add_flag("--summary", options.summary, "Print steps, edges and links at the end")
      ->needs(topology);
}

pipeline::pipeline(const pipeline_options& options)
    : options_(options), begin_(trace_clock::now()) {}

pipeline::~pipeline() {
  if (watch_) watch_->react(nullptr);
}

result<std::unique_ptr<pipeline>> pipeline::open(const pipeline_options& options) {
  std::unique_ptr<pipeline> made(new pipeline(options));
  if (options.model.empty() && options.topology.empty())
    return fail(errc::invalid_argument, "give a model (-m DIR) or a topology (--topology FILE)");
  if (options.serves || !options.topology.empty())
    made->watch_ = std::make_unique<signal_watch>();  // before any thread
  const result<void> opened = options.topology.empty() ? made->open_local() : made->open_cluster();
  if (!opened) return fail(opened.error());
  return made;
}

result<void> pipeline::open_local() {
  const std::uint32_t most = kernels::most_threads(options_.backend);
  if (most > 0 && options_.threads > most)
    return fail(errc::invalid_argument,
                "backend '" + options_.backend + "' computes on " + std::to_string(most) +
                    " thread: leave --threads out, or choose --backend cpu");
  backend_ = kernels::make_backend(options_.backend, {options_.threads});
  if (!backend_)
    return fail(errc::refused, "backend '" + options_.backend +
                                   "' cannot run here: the processor needs AVX2, FMA and F16C; "
                                   "try --backend reference");
  auto source = stage::model_source::open(options_.model);
  if (!source) return fail(source.error());
  source_ = std::move(*source);
  local::engine_options engine_options{rows_per_step(), 16, 0};
  const session::draft_setting draft = options_.draft.value_or(session::draft_setting{});
  engine_options.draft_tokens = draft.tokens;
  engine_options.draft_policy = draft.automatic;
  engine_options.prefix_positions = options_.prefix_positions;
  auto engine = local::local_engine::open(*source_, *backend_, engine_options);
  if (!engine) return fail(engine.error());
  engine_ = std::move(*engine);
  const auto measured = engine_->measure_costs();
  if (!measured) return fail(measured.error());
  if (measured->steps > 0) note_measured(*measured);
  return {};
}

/// Only where somebody waits for a server.
void pipeline::note_measured(const session::measured_costs& costs) const {
  if (options_.serves) fmt::print(stderr, "cedar: measured {}\n", session::to_string(costs));
}

result<void> pipeline::open_cluster() {
  if (!options_.trace.empty()) {
    // Opened now: a trace that cannot be written is not worth the run.
    trace_.open(options_.trace, std::ios::binary);
    if (!trace_) return cannot_write(options_.trace);
  }
  topology::cluster_options options;
  options.topology = options_.topology;
  options.model = options_.model;
  options.program = own_program();
  options.emulate_links = options_.emulate_links;
  options.draft = options_.draft;
  const bool traced = options_.summary || !options_.trace.empty();
  options.trace_events_max = traced ? trace_events_max : 0;
  if (options_.verbose)
    options.on_progress = [](const std::string& what) { fmt::print(stderr, "cedar: {}\n", what); };
  options.on_notice = [](const std::string& what) { fmt::print(stderr, "cedar: {}\n", what); };
  cluster_ = std::make_unique<topology::cluster>(options);
  watch_->react([to = cluster_.get()] { to->interrupt(); });
  if (const result<void> started = cluster_->start(); !started) return started;
  if (cluster_->measured()) note_measured(*cluster_->measured());
  if (options_.verbose) fmt::print(stderr, "{}", topology::render_plan(cluster_->topology()));
  return {};
}

session::generator& pipeline::generator() noexcept {
  if (cluster_) return *cluster_;
  return *engine_;
}

std::unique_ptr<session::generation_service> pipeline::service(std::uint32_t queue_max) {
  if (cluster_) return std::make_unique<topology::cluster_service>(*cluster_);
  auto made = std::make_unique<local::local_service>(*engine_, queue_max);
  local_ = made.get();
  return made;
}

void pipeline::react_to_signals(std::function<void()> reaction) {
  watch_->react(std::move(reaction));
}

void pipeline::interrupt() {
  if (cluster_) cluster_->interrupt();
  if (local_ != nullptr) local_->interrupt();
}

const stage::model_source& pipeline::model() const noexcept {
  return cluster_ ? cluster_->model() : *source_;
}

session::scheduler_limits pipeline::scheduler_limits() const {
  return cluster_ ? topology::scheduler_limits_of(cluster_->topology(), cluster_->model().config())
                  : engine_->scheduler_limits(1);
}

result<void> pipeline::check(const session::generation_request& request) const {
  return session::step_scheduler(scheduler_limits()).check(request);
}

session::service_limits pipeline::limits() const {
  return session::service_limits_of(scheduler_limits());
}

std::uint32_t pipeline::rows_per_step() const noexcept {
  return cluster_ ? cluster_->topology().limits().rows_per_step
                  : options_.rows_per_step.value_or(default_rows_per_step);
}

session::prefill_mode pipeline::mode() const noexcept {
  if (const auto chosen = session::prefill_mode_of(options_.mode)) return *chosen;
  return cluster_ ? cluster_->topology().mode() : session::prefill_mode::exact;
}

result<void> pipeline::finish(const std::vector<session::usage>& used) {
  if (!cluster_) return {};
  result<void> written;
  if (options_.summary || !options_.trace.empty()) {
    const auto reports = cluster_->reports();
    if (!options_.trace.empty()) {
      trace_ << to_chrome_json(trace_of(reports));
      trace_.close();
      if (!trace_) written = cannot_write(options_.trace);
    }
    if (options_.summary) {
      run_summary run = summarize(reports, begin_);
      for (const topology::measured_link& link : cluster_->links())
        run.links.push_back(to_string(cluster_->topology(), link));
      fmt::print(stderr, "{}", render_summary(run, cluster_->processes() + 1, used));
    }
  }
  watch_->react(nullptr);
  cluster_->stop();
  return written;
}

int report_error(const error& what) {
  const std::string& text = what.message;
  fmt::print(stderr, "cedar: {}{}", text, text.ends_with('\n') ? "" : "\n");
  return what.code == errc::cancelled ? 130 : 1;
}

}  // namespace cedar::tools
