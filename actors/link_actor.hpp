// The network at the edge of the actor world: links carry packets out, a switchboard brings them
// in.
//
// Only these two know that a transport port exists. A link stands for one remote node and takes
// packets like a local unit would; the switchboard turns arriving frames back into packets for
// local units.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "actors/interfaces.hpp"
#include "runtime/transport/port.hpp"

namespace cedar::actors {

/// Packets for `node`, encoded and sent through `port`, which outlives the actor. It has no
/// mailbox: whoever sends a packet encodes it, in its own thread and at once, so that no thread has
/// to be woken between a stage and the port. Packets of one sender leave in order.
link_actor spawn_link(caf::actor_system& system, transport::port& port, node_id node);

/// Who is at this node's end of an edge that crosses to another node.
struct switchboard_entry {
  node_id peer;  ///< the node at the other end; frames from anybody else are refused
  bool inbound = false;  ///< messages arrive (else credits do)
  packet_sink unit;
};

/// Receives the frames of a port and hands packets to local units. Runs in the port's thread:
/// decodes, checks the sender, sends an actor message; never waits.
class switchboard final : public transport::port_handler {
 public:
  struct listener {
    std::function<void(node_id)> on_peer_up;
    std::function<void(node_id, const error&)> on_peer_lost;
    /// A frame that cannot be used: malformed, or from a node that the edge does not come from.
    std::function<void(node_id, const error&)> on_bad_frame;
  };

  explicit switchboard(listener events) : events_(std::move(events)) {}

  /// Frames that arrive before this are refused.
  void connect(std::map<edge_id, switchboard_entry> entries);

  void on_frame(node_id from, flow::received_frame frame) override;
  void on_peer_up(node_id peer) override { events_.on_peer_up(peer); }
  void on_peer_lost(node_id peer, const error& reason) override {
    events_.on_peer_lost(peer, reason);
  }

 private:
  listener events_;
  std::mutex mutex_;
  std::map<edge_id, switchboard_entry> entries_;
};

}  // namespace cedar::actors
