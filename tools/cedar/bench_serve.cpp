// `cedar bench serve`: a server under load, and whether its answers stay what they are alone.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "tools/cedar/bench.hpp"
#include "tools/cedar/load_generator.hpp"
#include "tools/cedar/load_options.hpp"
#include "tools/cedar/load_report.hpp"
#include "tools/cedar/metrics_text.hpp"
#include "tools/cedar/pipeline.hpp"
#include "tools/cedar/serve_child.hpp"
#include "tools/cedar/served_model.hpp"

namespace cedar::tools {

namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr milliseconds memory_interval{500};
/// For gauges to come back to zero, and for a server of our own to end.
constexpr milliseconds settle_limit{10'000};
constexpr milliseconds settle_interval{50};
constexpr milliseconds stop_limit{60'000};

milliseconds to_milliseconds(double seconds) {
  return std::chrono::duration_cast<milliseconds>(std::chrono::duration<double>(seconds));
}

std::vector<std::string> bodies_of(const load_options& chosen, const std::string& model) {
  std::vector<std::string> out;
  for (std::uint32_t i = 0; i < chosen.prompts; ++i) {
    const std::uint64_t number = chosen.seed + i;
    json body{{"model", model},
              {"prompt", synthetic_prompt(chosen.prompt_tokens, chosen.token_ids, number)},
              {"max_tokens", chosen.max_tokens},
              {"temperature", chosen.temperature},
              {"seed", number},
              {"stream", true},
              {"stream_options", {{"include_usage", true}}}};
    if (chosen.ignore_eos) body["ignore_eos"] = true;
    if (chosen.timeout_s) body["timeout"] = *chosen.timeout_s;
    out.push_back(body.dump());
  }
  return out;
}

/// What an answer must repeat.
struct known_answer {
  std::string text;
  std::string finish_reason;
  std::uint64_t tokens = 0;

  friend bool operator==(const known_answer&, const known_answer&) = default;
};

class serve_bench {
 public:
  serve_bench(const load_options& chosen, const http::server_url& server, const serve_child* child)
      : chosen_(chosen), server_(server), child_(child) {}

  result<load_report> run();
  /// From any thread: ends run() with errc::cancelled.
  void interrupt() {
    const std::scoped_lock lock(mutex_);
    interrupted_ = true;
    if (running_ != nullptr) running_->stop();
  }

 private:
  std::chrono::steady_clock::duration drive(load_generator& load);
  result<void> ask_alone();
  void check(std::size_t body, const load_answer& answer);
  void note_memory();
  result<void> settle();

  const load_options& chosen_;
  const http::server_url& server_;
  const serve_child* child_;
  std::vector<std::string> bodies_;
  std::vector<known_answer> alone_;
  load_report report_;

  std::mutex mutex_;
  load_generator* running_ = nullptr;  ///< guarded by mutex_
  bool interrupted_ = false;  ///< guarded by mutex_
};

std::chrono::steady_clock::duration serve_bench::drive(load_generator& load) {
  {
    const std::scoped_lock lock(mutex_);
    if (interrupted_) return {};
    running_ = &load;
  }
  const auto took = load.run();
  const std::scoped_lock lock(mutex_);
  running_ = nullptr;
  return took;
}

/// Every prompt once, one after the other.
result<void> serve_bench::ask_alone() {
  load_shape shape;
  shape.requests_max = bodies_.size();
  shape.deadline = to_milliseconds(chosen_.deadline_s);
  load_generator load(server_, bodies_, shape);
  result<void> out;
  load.on_answer = [&](std::size_t, const load_answer& answer) {
    alone_.push_back({answer.text, answer.finish_reason, answer.tokens});
    if (out && !answer.is_whole())
      out = fail(errc::refused,
                 fmt::format("a request alone, before the load, was not answered: {}",
                             answer.is_expired        ? "its time had passed"
                             : answer.failure.empty() ? fmt::format("status {}", answer.status)
                                                      : answer.failure));
  };
  drive(load);
  return out;
}

void serve_bench::check(std::size_t body, const load_answer& answer) {
  if (!report_.verified || !answer.is_whole()) return;
  ++report_.verified->compared;
  if (alone_[body] != known_answer{answer.text, answer.finish_reason, answer.tokens})
    ++report_.verified->differing;
}

void serve_bench::note_memory() {
  if (child_ == nullptr) return;
  const memory_sample now = child_->memory();
  if (!report_.memory) report_.memory.emplace();
  report_.memory->processes = now.processes;
  report_.memory->bytes.push_back(now.bytes);
}

/// Waits until a server of our own holds nothing of requests any more; another's may have others.
result<void> serve_bench::settle() {
  if (child_ == nullptr) return {};
  const auto until = std::chrono::steady_clock::now() + settle_limit;
  do {
    std::this_thread::sleep_for(settle_interval);
    const auto metrics = read_metrics(server_);
    if (!metrics) return fail(metrics.error());
    report_.left_over.clear();
    for (const char* gauge :
         {"cedar_answers_open", "cedar_tokens_open", "cedar_scheduler_requests_running",
          "cedar_scheduler_requests_waiting", "cedar_scheduler_steps_in_flight",
          "cedar_kv_positions"})
      if (const double value = metrics->sum(gauge); value != 0) report_.left_over[gauge] = value;
  } while (!report_.left_over.empty() && std::chrono::steady_clock::now() < until);
  report_.is_left_over_known = true;
  return {};
}

result<load_report> serve_bench::run() {
  const auto model = served_model_of(server_);
  if (!model) return fail(model.error());
  bodies_ = bodies_of(chosen_, *model);
  report_.server = fmt::format("{} ({})", server_.text(), *model);
  report_.shape = chosen_.rate > 0
                      ? fmt::format("open loop, {} requests/s, seed {}", chosen_.rate, chosen_.seed)
                      : fmt::format("closed loop, {} at once", chosen_.concurrency);
  report_.shape += fmt::format(", prompts of {} tokens, answers of at most {}",
                               chosen_.prompt_tokens, chosen_.max_tokens);
  if (chosen_.timeout_s) report_.timeout = to_milliseconds(*chosen_.timeout_s);
  if (chosen_.verify) {
    if (const auto asked = ask_alone(); !asked) return fail(asked.error());
    report_.verified.emplace().prompts = bodies_.size();
  }
  load_shape shape;
  shape.concurrency = chosen_.concurrency;
  if (chosen_.rate > 0) shape.rate = chosen_.rate;
  shape.requests_max =
      chosen_.requests > 0 ? chosen_.requests : std::numeric_limits<std::uint64_t>::max();
  if (chosen_.seconds > 0) shape.duration = to_milliseconds(chosen_.seconds);
  shape.deadline = to_milliseconds(chosen_.deadline_s);
  shape.seed = chosen_.seed;
  load_generator load(server_, bodies_, shape);
  load.on_answer = [this](std::size_t body, const load_answer& answer) {
    report_.add(answer);
    check(body, answer);
  };
  if (child_ != nullptr) load.watch(memory_interval, [this] { note_memory(); });
  note_memory();
  report_.took = drive(load);
  note_memory();
  {
    const std::scoped_lock lock(mutex_);
    if (interrupted_) return fail(errc::cancelled, "interrupted");
  }
  if (const auto settled = settle(); !settled) return fail(settled.error());
  return std::move(report_);
}

result<void> write_json(const std::filesystem::path& path, const load_report& report) {
  std::ofstream file(path);
  file << report.json().dump(2) << '\n';
  file.close();
  if (!file) return fail(errc::io, "cannot write " + path.string());
  return {};
}

result<void> run(const load_options& chosen) {
  std::unique_ptr<serve_child> child;
  http::server_url server;
  if (chosen.url.empty()) {
    std::vector<std::string> arguments{"--topology", chosen.topology};
    if (!chosen.model.empty()) arguments.insert(arguments.end(), {"-m", chosen.model});
    auto started = serve_child::start(std::move(arguments));
    if (!started) return fail(started.error());
    child = std::move(*started);
    server = child->url();
  } else {
    auto url = http::parse_server_url(chosen.url);
    if (!url) return fail(url.error().with("--url"));
    server = std::move(*url);
  }
  serve_bench bench(chosen, server, child.get());
  result<load_report> report;
  {
    signal_watch watch;  // now: until here Ctrl-C ends us, and the child with us
    watch.react([&] { bench.interrupt(); });
    report = bench.run();
    watch.react(nullptr);
  }
  result<void> stopped;
  if (child) stopped = child->stop(stop_limit);
  if (!report) return fail(report.error());
  fmt::print("{}", report->text());
  if (!chosen.json.empty())
    if (const auto written = write_json(chosen.json, *report); !written) return written;
  if (const std::string problem = report->problem(); !problem.empty())
    return fail(errc::mismatch, problem);
  return stopped;
}

}  // namespace

void add_bench_serve(CLI::App& bench, int& exit_code) {
  CLI::App* command = bench.add_subcommand(
      "serve", "Load on a server: times, throughput, refusals; --verify compares every answer");
  // SHARED: with the callback, until app is gone
  const auto chosen = std::make_shared<load_options>();
  add_load_options(*command, *chosen);
  command->callback([chosen, &exit_code] {
    settle(*chosen);
    const result<void> ran = run(*chosen);
    if (!ran) exit_code = report_error(ran.error());
  });
}

}  // namespace cedar::tools
