// The life of a process that is a node of somebody else's topology: join, become what the client
// says, serve, stop.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "runtime/base/result.hpp"

namespace cedar::topology {

struct node_options {
  std::string name;  ///< as the topology calls this node
  std::string controller_host;  ///< where the client's control plane listens
  std::uint16_t controller_port = 0;
  std::filesystem::path secret;  ///< file
  std::filesystem::path model;  ///< checkpoint on this host; empty: what the topology says
  std::chrono::milliseconds join_deadline{20000};
  /// Told what is going on: "joined the client at 10.0.0.1:7000", "told to stop".
  std::function<void(const std::string&)> on_progress;
};

/// Runs until the client stops the node or is lost. Errors: timeout (the client did not answer),
/// or began nothing with this node), refused (secret, name, version), capacity (a node of that name
/// has joined, and the client does not know yet that it is gone), peer_lost (the client is gone, or
/// has given this node up), mismatch (another checkpoint than the client's), or what kept the units
/// from loading (the client hears it too).
result<void> run_node(const node_options& options);

}  // namespace cedar::topology
