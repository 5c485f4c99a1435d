// The client's side of a topology: starts the other nodes, wires them, runs requests, ends
// everything.
//
// 1. start() returns when every unit is loaded and every edge is bound, or with the reason why not;
// then no
//    process of it is left.
// 2. A node that is lost fails the pipeline by name; generate() returns that error.
// 3. The destructor stops all processes, also those that do not answer.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/session/generator.hpp"
#include "topology/launch/child_process.hpp"
#include "topology/launch/controller.hpp"
#include "topology/launch/event_queue.hpp"
#include "topology/launch/node_runtime.hpp"
#include "topology/launch/secret.hpp"

namespace cedar::topology {

class cluster;

struct cluster_options {
  std::filesystem::path topology;  ///< YAML file
  std::filesystem::path model;  ///< overrides the file's checkpoint; empty: the file's
  std::filesystem::path program;  ///< cedar's executable, for nodes of this host
  std::uint64_t trace_events_max = 0;
  /// Told what is going on: "loading", "node 'back' joined (pid 4711)".
  std::function<void(const std::string&)> on_progress;
  /// Called first thing, so that interrupt() can reach a start that takes long.
  std::function<void(cluster&)> on_started;
};

class cluster final : public session::generator {
 public:
  /// Errors: malformed (the topology: all mistakes, a line each), those of the model, timeout and
  /// refused (nodes that do not join or load, by name), cancelled (interrupt()).
  static result<std::unique_ptr<cluster>> start(const cluster_options& options);
  ~cluster() override;

  result<std::vector<session::usage>> generate(
      const std::vector<session::generation_request>& requests,
      const session::generation_sink& sink) override;

  /// Ends start() or generate() with errc::cancelled. From any thread.
  void interrupt();

  const stage::model_source& model() const noexcept { return *model_; }
  const plan& topology() const noexcept { return *plan_; }
  /// Processes other than this one.
  std::size_t processes() const noexcept { return children_.size(); }

  /// What every node recorded since the last call. Nodes that do not answer are left out.
  std::vector<node_report> reports();

  /// Ends all nodes in good order within the drain deadline; then by force.
  void stop();

 private:
  struct rows_event {
    flow::proposal proposal;  // keeps the logits of `events` alive
    std::vector<session::row_event> events;
  };
  struct finished_event {
    request_id request;
    session::usage used;
  };
  struct joined_event {
    std::string node;
    agent_actor agent;
  };
  struct interrupted_event {};
  using event = std::variant<rows_event, finished_event, flow::tap, actors::fault, joined_event,
                             interrupted_event>;

  explicit cluster(const cluster_options& options) : options_(options) {}

  result<void> read_topology();
  result<void> start_control();
  result<void> spawn_nodes();
  result<void> await_joins();
  result<void> open_local();
  result<std::vector<std::string>> deploy_all();
  result<void> wire_all(const std::vector<std::string>& addresses);
  result<void> start_all();
  node_settings settings_of(const node_plan& node);
  actors::scheduler_listener listener();
  std::string describe(node_id node) const;
  bool remote() const;
  void progress(const std::string& what) const;

  cluster_options options_;
  std::string text_;  ///< of the topology file
  std::unique_ptr<stage::model_source> model_;
  std::optional<plan> plan_;
  std::uint64_t fingerprint_ = 0;
  event_queue<event> events_;
  std::optional<secret_file> secret_;
  std::optional<system_config> config_;
  std::unique_ptr<caf::actor_system> system_;
  std::unique_ptr<transport::loopback_hub> hub_;
  controller_actor controller_;
  std::uint16_t control_port_ = 0;
  std::map<node_id, child_process> children_;
  std::map<node_id, agent_actor> agents_;
  std::map<node_id, std::unique_ptr<node_runtime>> local_;
  std::optional<actors::fault> failure_;
  bool stopped_ = false;
};

}  // namespace cedar::topology
