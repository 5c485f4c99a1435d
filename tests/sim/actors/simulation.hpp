// A whole topology in one thread: production actors, links, switchboards and units under CAF's test
// scheduler and test clock, over ports of a loopback hub that may misbehave. Every choice between
// things that could happen next comes from a seed, so a seed is a run.
//
// 1. An action is one message handled by one actor, one event of the network, or time passing.
// 2. On every edge a gate actor sees what passes: messages one way, credits the other. After every
//    action no edge may have more on its way than its window (a violation is text, see
//    `violations`).
// 3. What went wrong reaches the scheduler as a cluster would tell it, and the pipeline comes back
//    as a cluster brings it back: connections, killed units, a new epoch everywhere, then steps.
#pragma once

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "actors/link_actor.hpp"
#include "actors/scheduler_actor.hpp"
#include "actors/unit_actor.hpp"
#include "runtime/transport/faulty_port.hpp"
#include "runtime/transport/loopback_hub.hpp"
#include "tests/sim/actors/oracle.hpp"
#include "tests/support/effort.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology {
// Boost.Test prints the kinds of a data set.
inline std::ostream& operator<<(std::ostream& out, edge_kind kind) {
  return out << to_string(kind);
}
}  // namespace cedar::topology

namespace cedar::test {

/// "one node", "two nodes", "three nodes", "mirror", "gather", "experts" (with indexers):
/// placements of tiny-12.
const std::vector<std::string>& topology_names();

/// The same with a drafter, "drafted two nodes" and so on; it lies with other units, and alone.
const std::vector<std::string>& drafted_names();

/// Placements of tiny-vision with vision, beside others or on a node of its own; one with a
/// drafter.
const std::vector<std::string>& seeing_names();

/// The plan of a placement with `sections` (limits, deadlines_ms) appended to its file.
topology::plan planned(const std::string& topology_name, const std::string& sections);

struct sim_settings {
  std::uint64_t seed = 0;
  transport::fault_plan faults{};  ///< of every node's port; its seed is ours
  bool small_windows = false;  ///< one message a window, where the plan has one for every step
  /// Swallows the n-th message (from 0) on the edges of this kind, as a network that loses it
  /// would.
  std::optional<std::pair<topology::edge_kind, std::uint64_t>> lost{};
  session::drafter* drafter = nullptr;  ///< instead of the plan's
};

/// What passed an edge.
struct edge_watch {
  topology::edge_kind kind = topology::edge_kind::step_table;
  flow::edge_contract contract;
  epoch_id epoch;  ///< what is older counts for nothing
  std::uint64_t messages = 0;  ///< ever
  std::int64_t messages_out = 0;  ///< without their credit
  std::int64_t bytes_out = 0;
  std::int64_t messages_out_max = 0;
  std::vector<flow::verdict> verdicts;
};

class simulation {
 public:
  simulation(const topology::plan& plan, const sim_settings& settings);
  ~simulation();
  simulation(const simulation&) = delete;
  simulation& operator=(const simulation&) = delete;

  /// The scheduler's answer. Nothing else happens meanwhile.
  result<std::vector<request_id>> submit(const std::vector<session::generation_request>& requests);

  /// Tells the scheduler to measure, before any request. recover() ends that, done or not.
  void measure();
  /// The scheduler hears of it as one message among others.
  void cancel(request_id request);

  /// One action; false: nothing is left to do but wait.
  bool act();
  /// Actions until nothing is left to do.
  void run();
  /// Time passes; what is due then happens.
  void advance(std::chrono::milliseconds time);

  /// A process that dies: its units end, its connections break. Not the scheduler's.
  void kill(const std::string& node);
  /// The network does to frames what it should from now on.
  void calm();
  /// Brings the pipeline back after a failure, while late messages are still on their way.
  void recover();
  /// The scheduler has failed, and has not been resumed since.
  bool failed() const { return failed_; }

  /// A unit handles no message until it is let go again.
  void stall(const std::string& unit);
  void resume(const std::string& unit);

  session::scheduler_limits limits() const;
  const std::map<edge_id, edge_watch>& edges() const { return watches_; }
  std::size_t pages_in_use() const;
  std::size_t sequences() const;  ///< of the drafter too
  std::size_t image_rows() const;  ///< that vision holds
  transport::fault_counts fault_counts() const;
  bool credit_is_whole() const;

  std::map<request_id, std::vector<answered_row>> rows;
  std::map<request_id, session::usage> finished;
  std::vector<session::measured_costs> measured;
  std::vector<flow::tap> taps;
  std::map<request_id, std::size_t> taps_before_finish;  ///< how many had come
  std::vector<request_id> given_up;
  std::vector<actors::fault> given_up_for;  ///< reasons that the scheduler gave
  std::vector<actors::fault> faults;  ///< of units, edges, frames and peers, each in its epoch
  std::vector<std::string> violations;

 private:
  struct node;
  struct configuration : caf::actor_system_config {
    configuration();
  };

  void open_nodes();
  void connect_nodes();
  void spawn_units();
  void spawn_scheduler();
  /// Returns when every unit has begun the present epoch.
  void bind_all();
  void bind(const topology::unit_plan& unit);
  actors::unit_actor spawn_unit(const topology::unit_plan& unit);
  actors::packet_sink sink_of(node_id self, topology::unit_id unit, node_id at);
  actors::packet_sink spawn_gate(const actors::packet_sink& peer);
  bool note(edge_watch& watch, const flow::stamped_message& packet);
  void report(const actors::fault& what);
  bool run_a_job();
  template <class Handle>
  static caf::resumable* job_of(const Handle& actor) {
    return dynamic_cast<caf::resumable*>(caf::actor_cast<caf::abstract_actor*>(actor));
  }

  const topology::plan& plan_;
  const stage::model_source& model_;
  sim_settings settings_;
  std::mt19937_64 random_;
  trace_recorder no_trace_{0};
  configuration config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& jobs_;
  transport::loopback_hub hub_;
  std::map<node_id, std::unique_ptr<node>> nodes_;
  std::map<edge_id, edge_watch> watches_;
  std::map<topology::unit_id, const stage::layer_stage*> stages_;  ///< owned by their actors
  std::map<topology::unit_id, const stage::indexer_stage*> indexers_;  ///< likewise
  const stage::drafter_stage* drafter_ = nullptr;  ///< likewise; null: there is none
  const stage::vision_stage* vision_ = nullptr;  ///< likewise
  std::set<std::pair<node_id, node_id>> up_;  ///< node and peer, as the node knows it
  epoch_id epoch_{1};
  std::size_t bound_ = 0;  ///< units that have begun it
  bool troubled_ = false;  ///< something has gone wrong in it
  bool failed_ = false;
  std::set<caf::resumable*> stalled_;
  actors::fault_sink supervisor_;
  actors::scheduler_actor scheduler_;
  std::map<topology::unit_id, actors::unit_actor> units_;
  std::vector<caf::actor> all_;
};

}  // namespace cedar::test
