// What `run` and `logits` compute with: the engine of this process, or a topology of actors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/ops/backend.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/trace.hpp"
#include "runtime/local/local_service.hpp"
#include "runtime/session/draft_setting.hpp"
#include "tools/cedar/signal_watch.hpp"
#include "topology/launch/cluster.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cedar::tools {

struct pipeline_options {
  std::filesystem::path model;  ///< -m
  std::filesystem::path topology;  ///< --topology; empty: one process, no actors
  bool emulate_links = false;  ///< --emulate-links; only with a topology
  std::string backend = "cpu";  ///< --backend; only without a topology, which names its devices
  std::uint32_t threads = 1;  ///< --threads; only without a topology, as above
  std::optional<session::draft_setting> draft;  ///< --draft; none: the topology's, or off
  std::uint32_t prefix_positions = 0;  ///< --prefix-positions; only without a topology
  std::string mode;  ///< --mode; empty: the topology's, or exact
  std::optional<std::uint32_t> rows_per_step;  ///< only without a topology; none: 128
  std::filesystem::path trace;  ///< --trace; only with a topology
  bool summary = false;  ///< --summary; only with a topology
  bool serves = false;  ///< a signal does not end the process, also without a topology
  bool verbose = false;  ///< --verbose: progress and the plan, to standard error
};

/// Adds --emulate-links, which needs `topology`, the option that names one.
void add_emulate_links(CLI::App& command, CLI::Option* topology, bool& to);
/// Adds the options to a subcommand: what computes, and how it is watched.
void add_pipeline_options(CLI::App& command, pipeline_options& options);

class pipeline {
 public:
  /// Errors: those of model_source and cluster::start; io (the trace); invalid_argument: options
  /// that exclude each other, neither a model nor a topology.
  static result<std::unique_ptr<pipeline>> open(const pipeline_options& options);
  ~pipeline();

  session::generator& generator() noexcept;
  /// The same as a service, instead of generator(); the pipeline outlives it, and no interrupt()
  /// comes after its end. `queue_max`: requests that may wait, without a topology.
  std::unique_ptr<session::generation_service> service(std::uint32_t queue_max);
  const stage::model_source& model() const noexcept;
  /// What generating `request` would refuse. Errors: those of step_scheduler::check().
  result<void> check(const session::generation_request& request) const;
  /// What somebody who makes requests must know.
  session::service_limits limits() const;
  /// Prompt rows that one step takes.
  std::uint32_t rows_per_step() const noexcept;

  /// Of requests that do not say it: the command line's, else the topology's, else exact.
  session::prefill_mode mode() const noexcept;

  /// What Ctrl-C, SIGTERM and SIGHUP do from now on, instead of interrupt(); nullptr: nothing. With
  /// a topology or options.serves.
  void react_to_signals(std::function<void()> reaction);
  /// Ends what a topology's pipeline, or a service, is running.
  void interrupt();

  /// Trace file and summary, as far as asked for; then stops all processes. `used`: numbers of the
  /// requests that were run.
  result<void> finish(const std::vector<session::usage>& used);

 private:
  explicit pipeline(const pipeline_options& options);

  session::scheduler_limits scheduler_limits() const;
  result<void> open_local();
  result<void> open_cluster();
  void note_measured(const session::measured_costs& costs) const;

  pipeline_options options_;
  trace_clock::time_point begin_;
  std::ofstream trace_;
  std::unique_ptr<kernels::backend> backend_;
  std::unique_ptr<stage::model_source> source_;
  std::unique_ptr<local::local_engine> engine_;
  std::unique_ptr<topology::cluster> cluster_;
  local::local_service* local_ = nullptr;  ///< the service, without a topology
  std::unique_ptr<signal_watch> watch_;
};

/// Prints "cedar: <text>" to standard error and returns the exit code: 130 if cancelled, else 1.
int report_error(const error& what);

}  // namespace cedar::tools
