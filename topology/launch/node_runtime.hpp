// What one process runs for its node: units under actors, links to the other nodes, a transport
// port.
//
// Life: open() loads the units and opens the port; wire() connects the peers and binds the edges;
// then messages flow until close(), or until something fails: part() and wire() begin another
// epoch. The plan, the model and the actor system outlive the runtime.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "actors/link_actor.hpp"
#include "actors/scheduler_actor.hpp"
#include "actors/unit_actor.hpp"
#include "runtime/stage/model_source.hpp"
#include "runtime/transport/loopback_hub.hpp"
#include "runtime/transport/options.hpp"
#include "runtime/transport/probed_port.hpp"
#include "runtime/transport/ucx/ucx_port.hpp"
#include "topology/launch/control.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology {

/// What happens to a node, for whoever supervises it. Called from any thread; must not block.
struct node_events {
  std::function<void(const actors::fault&)> on_fault;  ///< a unit, an edge, a frame
  /// `epoch`: the present one of this node.
  std::function<void(node_id, const error&, epoch_id epoch)> on_peer_lost;
};

struct node_settings {
  node_id self;
  std::uint64_t fingerprint = 0;  ///< of the model
  transport::shared_secret secret;
  std::uint64_t trace_events_max = 0;
  bool emulate_links = false;  ///< send as the plan's links would
  transport::loopback_hub* hub = nullptr;  ///< all nodes in this process; else UCX
  actors::scheduler_listener listener;  ///< used where the scheduler is placed
  /// Used there too: drafts instead of the plan's drafter, as many tokens. None: that one does.
  session::drafter* drafter = nullptr;
  node_events events;
};

/// What the scheduler of this plan allows; it queues `requests` times 64 requests.
session::scheduler_limits scheduler_limits_of(const plan& topology,
                                              const model::model_config& config);

/// How the port of `node` is opened: address, devices, shared memory. Errors: those of address_of.
result<transport::ucx::ucx_options> ucx_options_of(const plan& topology, node_id node);

class node_runtime {
 public:
  /// Makes the backends of the node's devices, then loads its units. Errors: those of backend_for()
  /// and of model_source's factories; io (the port).
  static result<std::unique_ptr<node_runtime>> open(caf::actor_system& system, const plan& topology,
                                                    const stage::model_source& model,
                                                    node_settings settings);
  ~node_runtime();

  /// Where other nodes reach this one; empty if there are none.
  std::string address() const;

  /// Connects to the other nodes, as far as they are not, makes units anew that died of a defect,
  /// and binds all edges: `epoch` begins here. `addresses` by node id. Errors: timeout, peer_lost,
  /// refused, naming the node; those of open() (units); cancelled (part(), give_up_wiring()).
  result<void> wire(const std::vector<std::string>& addresses, epoch_id epoch);

  /// Before the wiring of `epoch`: ends older ones, and drops the connections to `peers`. Returns
  /// when they are down, so that the wiring meets their successors. Errors: timeout.
  result<void> part(const std::vector<node_id>& peers, epoch_id epoch);

  /// Ends a wire() that still waits for others, and all later ones. From any thread.
  void give_up_wiring();

  /// The link to a connected peer (transport/link_probe.hpp); waits for it. Errors: timeout, or why
  /// the peer is lost; cancelled (give_up_measuring()).
  result<link_measurement> measure(node_id peer, std::chrono::steady_clock::time_point until);
  /// Ends measure(), and all later ones. From any thread.
  void give_up_measuring();

  /// Whether `peer` is connected.
  bool reaches(node_id peer) const;

  /// Only where the scheduler is placed.
  const actors::scheduler_actor& scheduler() const noexcept { return scheduler_; }

  node_report report();
  /// What has left on its edges, and what its units hold. From any thread.
  node_usage usage() const;

  /// Stops the actors and closes the port in good order.
  void close();

 private:
  node_runtime(caf::actor_system& system, const plan& topology, const stage::model_source& model,
               node_settings settings);

  result<void> open_port();
  std::vector<engram_report> engram_reports() const;
  result<void> make_backends();
  result<void> spawn_units();
  result<void> spawn_unit(const unit_plan& unit);
  result<std::unique_ptr<stage::unit>> make_unit(const unit_plan& unit);
  result<std::unique_ptr<stage::unit>> make_stage(const stage_role& role,
                                                  const kernels::backend& backend);
  bool peers_with(node_id other) const;
  result<void> connect_peers(const std::vector<std::string>& addresses, epoch_id epoch);
  result<void> revive_units();
  bool has_ended(const actors::unit_actor& actor);
  result<void> bind_unit(unit_id unit, epoch_id epoch);
  actors::unit_actor actor_of(unit_id unit) const;
  actors::packet_sink sink_of(unit_id unit, node_id node);
  void peer_event(node_id peer, const error* lost);

  caf::actor_system& system_;
  const plan& plan_;
  const stage::model_source& model_;
  node_settings settings_;
  trace_recorder trace_;
  /// One a device: its units share its threads.
  std::map<device_id, std::unique_ptr<kernels::backend>> backends_;
  std::unique_ptr<actors::switchboard> switchboard_;
  std::unique_ptr<transport::probed_port> port_;
  actors::fault_sink supervisor_;
  std::map<unit_id, actors::unit_actor> units_;
  actors::scheduler_actor scheduler_;
  std::map<node_id, actors::link_actor> links_;

  std::mutex wiring_;  ///< one at a time

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::set<node_id> up_;
  std::set<node_id> sought_;  ///< connect() was called, and nothing has come of it yet
  std::map<node_id, error> lost_;  ///< why those are not up that had been, or were sought
  std::set<node_id> parting_;  ///< whose loss is no news
  epoch_id epoch_;  ///< of the last wiring that began
  epoch_id oldest_epoch_;  ///< wirings of older ones are given up
};

}  // namespace cedar::topology
