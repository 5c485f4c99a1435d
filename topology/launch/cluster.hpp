// The client's side of a topology: starts the other nodes, wires them, runs requests, ends
// everything.
//
// 1. start() returns when every unit is loaded, every edge is bound and what has to be measured is,
//    or with the reason why not; then no process of it is left.
// 2. A node that is lost fails the pipeline by name; generate() returns that error. After an error
//    only reports() and stop() are of use: it is a cluster_service that recovers.
// 3. The destructor stops all processes, also those that do not answer; nodes that a person started
//    are told to stop, and end by themselves.
// 4. All news comes through one queue: joins, answers, faults, interruptions. So nothing has to be
//    waited for while something else has gone wrong already.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/session/draft_setting.hpp"
#include "runtime/session/drafter.hpp"
#include "runtime/session/generator.hpp"
#include "runtime/session/service.hpp"
#include "topology/launch/child_process.hpp"
#include "topology/launch/controller.hpp"
#include "topology/launch/event_queue.hpp"
#include "topology/launch/node_runtime.hpp"
#include "topology/launch/secret.hpp"
#include "topology/plan/link_claims.hpp"

namespace cedar::topology {

struct cluster_options {
  std::filesystem::path topology;  ///< YAML file
  std::filesystem::path model;  ///< overrides the file's checkpoint; empty: the file's
  std::filesystem::path program;  ///< cedar's executable, for nodes of this host
  std::uint64_t trace_events_max = 0;
  /// Told what is going on: "loading", "node 'back' joined (pid 4711)".
  std::function<void(const std::string&)> on_progress;
  /// Told what a person should know or do: the command that starts a node of another host, who was
  /// turned away.
  std::function<void(const std::string&)> on_notice;
  bool emulate_links = false;  ///< impose what the file's `links` say; refused if it has none
  std::optional<session::draft_setting> draft;  ///< overrides the file's `draft`
  /// Drafts instead of the topology's drafter, as many tokens as that of the model; called by the
  /// scheduler. Outlives the cluster.
  session::drafter* drafter = nullptr;
};

class cluster final : public session::generator {
 public:
  /// Starts nothing yet, so that interrupt() can reach a start that takes long.
  explicit cluster(const cluster_options& options) : options_(options) {}
  ~cluster() override;

  /// To be called once, first. Errors: malformed (the topology: all mistakes, a line each), those
  /// of the model, timeout, refused, peer_lost (nodes that do not join, load or connect, by name),
  /// refused (links that are slower than a strict file claims), cancelled (interrupt()).
  result<void> start();

  result<std::vector<session::usage>> generate(
      const std::vector<session::generation_request>& requests,
      const session::generation_sink& sink) override;

  /// Ends start() or generate(), now or the next, with errc::cancelled; a cluster_service's
  /// requests likewise. From any thread.
  void interrupt();

  /// Both after start() has read the topology.
  const stage::model_source& model() const noexcept { return *model_; }
  const plan& topology() const noexcept { return *plan_; }
  /// What start() measured, of all pairs of nodes that exchange messages.
  const std::vector<measured_link>& links() const noexcept { return links_; }
  /// Processes other than this one.
  std::size_t processes() const noexcept { return remote() ? plan_->nodes().size() - 1 : 0; }

  /// What start() measured for the choice of drafts (`draft: auto`); nothing else, or not in time.
  const std::optional<session::measured_costs>& measured() const noexcept { return measured_; }

  /// What every node recorded since the last call. Nodes that do not answer are left out.
  std::vector<node_report> reports();

  /// Ends all nodes: in good order within the drain deadline, or by force if they take longer.
  /// After an error they get a moment only.
  void stop();

 private:
  friend class cluster_service;

  struct rows_event {
    flow::proposal proposal;  // keeps the logits of `events` alive
    std::vector<session::row_event> events;
  };
  struct finished_event {
    request_id request;
    session::usage used;
  };
  /// What the scheduler has given up.
  struct failed_event {
    std::vector<request_id> requests;
    actors::fault why;
  };
  struct joined_event {
    std::string node;
    agent_actor agent;
  };
  struct left_event {
    std::string node;
    caf::actor_addr agent;
  };
  struct refused_event {
    std::string why;
  };
  /// Answers of a node, each in the epoch that it was asked for.
  struct deployed_event {
    node_id node;
    result<std::string> address;
    epoch_id epoch;
  };
  struct parted_event {
    node_id node;
    result<void> done;
    epoch_id epoch;
  };
  struct wired_event {
    node_id node;
    result<void> bound;
    epoch_id epoch;
  };
  struct link_event {
    node_id node;
    result<link_measurement> found;
    epoch_id epoch;
  };
  /// A node of this process has lost another node, which the client knows by its connection.
  struct lost_event {
    node_id node;
    error reason;
    epoch_id epoch;
  };
  /// A node of another process has lost one.
  struct cut_event {
    node_id node;
    node_id peer;
    error reason;
    epoch_id epoch;
  };
  struct usage_event {
    node_id node;
    node_usage usage;
  };
  struct costs_event {
    session::measured_costs costs;
  };
  struct interrupted_event {};
  /// Orders of a cluster_service.
  struct submit_event {
    request_id ticket;
    session::generation_request request;
    session::request_events events;
  };
  struct cancel_event {
    request_id ticket;
  };
  struct end_event {};
  using event = std::variant<rows_event, finished_event, failed_event, flow::tap, actors::fault,
                             joined_event, left_event, refused_event, deployed_event, parted_event,
                             wired_event, link_event, costs_event, lost_event, cut_event,
                             interrupted_event, submit_event, cancel_event, end_event, usage_event>;
  /// What start() waits for: nodes that got so far.
  using progress_set = std::set<node_id>;

  result<void> read_topology();
  result<void> start_all();
  result<void> start_control();
  result<void> spawn(const node_plan& node);
  void announce(const node_plan& node) const;
  /// What a person types to start `node`.
  std::string command_of(const node_plan& node) const;
  result<void> open_local();
  /// Those that have joined and are not deployed.
  result<void> deploy_all();
  result<void> wire_all();
  /// Times some steps before the first request, where that decides what is drafted, and wires all
  /// anew, so that nothing of them is left (cluster_measure.cpp).
  result<void> measure_costs();
  result<void> await_measured();

  // The links (cluster_links.cpp).

  /// All between nodes that exchange messages. Errors: those of node_runtime::measure, by name;
  /// refused (judge_links()).
  result<void> measure_links();
  result<void> measure_link(node_id from, node_id to);
  result<void> await_measurement(node_id from, node_id to);
  /// Tells of links that are slower than claimed. Errors: refused, if the file is strict.
  result<void> judge_links() const;

  // Coming back (recovery.cpp).

  /// One attempt to bring the pipeline back: gives up what is broken, starts its successors, wires
  /// all anew. Then resume() is all that is missing. Errors: why it did not come back this time;
  /// cancelled (interrupted, or end_event). News that it has no use for goes to `others`.
  result<void> recover(const std::function<void(event&)>& others);
  /// The scheduler goes on.
  void resume();
  std::set<node_id> find_broken();
  void abandon(const std::set<node_id>& broken);
  result<void> part_from_former();
  result<void> restart(const std::set<node_id>& broken);
  result<void> await_joining(const std::set<node_id>& nodes);
  /// News of an older epoch, or of a connection whose end is known.
  bool is_stale(const event& news) const;
  error describe_cut(const cut_event& cut);

  /// Takes news until `done` holds all nodes. `step` tells what they have to do, for texts: "join".
  result<void> await(const progress_set& done, const std::string& step);
  /// One piece of news while starting, or coming back.
  result<void> note(event& news);
  result<void> note_answer(const event& news);
  void note_joined(const joined_event& joined);
  /// `what` went wrong with `node` itself: it has to be started again.
  tl::unexpected<error> blame(node_id node, error what);
  void blame_missing(const progress_set& done);
  error not_done(const progress_set& done, const std::string& step) const;
  error describe_leaving(const std::string& node);
  void note_refusal(const refused_event& refused);
  /// Tells all agents to stop; waits for those that are not our children.
  void stop_agents(std::chrono::steady_clock::time_point until);
  std::optional<error> ended_child();
  std::chrono::milliseconds time_left() const;
  /// Sends a request to a node's agent; what comes back becomes an Event.
  template <class Event, class Answer, class... Arguments>
  void ask(node_id node, const Arguments&... arguments);
  /// Every node answers with a usage_event, if it answers.
  void ask_for_usage();
  void ask_to_measure(node_id node, node_id peer);
  void ask_to_part(node_id node, const std::vector<node_id>& peers);

  struct progress_of_requests;
  /// Hands the scheduler more requests as earlier ones finish: its queue is bounded.
  result<void> submit_some(const std::vector<session::generation_request>& requests,
                           progress_of_requests& running);
  /// One piece of news while requests run.
  result<void> take(event& news, const session::generation_sink& sink,
                    progress_of_requests& requests);
  /// A node's loss may show first as somebody else's fault: waits a moment for a better reason.
  /// Other news of that moment goes to `others`, or nowhere.
  error root_cause(error first);
  error root_cause(error first, std::vector<event>& others);
  /// The scheduler's ids of requests that it takes.
  result<std::vector<request_id>> submit(std::vector<session::generation_request> requests);
  /// Tells the scheduler that its requests cannot go on.
  void give_up(const error& why);
  void lose(node_id node);
  error describe_loss(const lost_event& lost);
  /// "stage 'decoder' layers 6-11, head".
  std::string units_of(node_id node) const;

  node_settings settings_of(const node_plan& node);
  actors::scheduler_listener listener();
  std::string name_of(node_id node) const { return "node '" + (*plan_)[node].name + "'"; }
  bool remote() const noexcept;
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
  std::vector<caf::actor> askers_;  ///< each waits for an agent's answer, or has waited for it
  std::map<node_id, std::unique_ptr<node_runtime>> local_;

  std::chrono::steady_clock::time_point start_limit_;
  progress_set joined_;
  progress_set deployed_;
  progress_set parted_;
  progress_set wired_;
  std::optional<result<link_measurement>> link_measured_;  ///< of the link that is being measured
  std::vector<measured_link> links_;
  epoch_id epoch_{1};  ///< of the last wiring that was begun: one each
  std::vector<std::string> addresses_;  ///< of the data plane, by node
  std::set<node_id> lost_;  ///< and not come back
  std::map<node_id, std::uint64_t> losses_;  ///< ever
  std::set<node_id> blamed_;  ///< have to be started again, though they are not lost
  std::set<node_id> former_;  ///< lost, and somebody may still be connected to what is gone
  std::set<node_id> left_;  ///< lost, nobody is connected any more, and no successor has joined
  std::map<node_id, epoch_id> back_since_;  ///< the first wiring of those that were lost
  std::set<std::pair<node_id, node_id>> cuts_;  ///< nodes that have lost each other; lower id first
  std::map<std::pair<node_id, node_id>, std::uint64_t> link_losses_;  ///< of such nodes, ever
  std::function<void(event&)> others_;  ///< while coming back: takes other news
  std::string last_refusal_;
  std::optional<session::measured_costs> measured_;
  std::optional<error> failure_;  ///< why nothing can be generated any more
  bool ready_ = false;
  bool stopped_ = false;

  mutable std::mutex load_mutex_;
  session::scheduler_load load_;  ///< of the scheduler, which tells it at any time
};

}  // namespace cedar::topology
