// Ports between nodes of one process: for tests, and for whole topologies in one process.
//
// 1. Frames are copied as a network would, so both ends own what they hold.
// 2. Events are delivered in the order of their causes, by whoever calls deliver(): a test, step by
//    step and deterministic, or run(), a thread.
// 3. No heartbeat and no secret: nodes of one process live and die together.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/base/ids.hpp"
#include "runtime/transport/port.hpp"

namespace cedar::transport {

/// Outlives its ports' use; ports may outlive the hub (they are then closed).
class loopback_hub {
 public:
  loopback_hub();
  ~loopback_hub();
  loopback_hub(const loopback_hub&) = delete;
  loopback_hub& operator=(const loopback_hub&) = delete;

  /// The node's port. `handler` outlives it. Defect: the node has an open port already.
  std::unique_ptr<port> open(node_id self, const std::string& name, port_handler& handler);

  /// Delivers up to `events_max` events in order; returns how many there were.
  std::size_t deliver(std::size_t events_max);

  /// Delivers events from a thread of its own from now on. deliver() must not be called any more.
  void run();

 private:
  class call_in_progress;
  class endpoint;
  struct state;
  std::shared_ptr<state> state_;  // SHARED: with the ports, until the last of them is gone
};

}  // namespace cedar::transport
