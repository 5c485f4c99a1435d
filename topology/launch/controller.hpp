// Where nodes report to: lets in who knows the secret, passes on what they say.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "runtime/transport/options.hpp"
#include "topology/launch/control.hpp"

namespace cedar::topology {

struct controller_settings {
  transport::shared_secret secret;
  std::set<std::string> nodes;  ///< that may join, each once, and again when it is gone
  /// Of this program: nodes must have the same.
  std::vector<std::string> identity = program_identity();
  /// From its joining on, how long a node waits to be wired.
  std::chrono::milliseconds start_limit{20000};
  std::function<void(const std::string& node, const agent_actor&)> on_joined;
  /// A node that had joined as this agent is gone, or has ended as it was told.
  std::function<void(const std::string& node, const caf::actor_addr& agent)> on_left;
  /// Who was turned away, and why. Told a limited number of times: anybody may knock.
  std::function<void(const std::string& why)> on_refused;
  std::function<void(const actors::fault&)> on_fault;
  /// A node has lost another one.
  std::function<void(const std::string& node, const std::string& peer, const error&, epoch_id)>
      on_lost;
};

controller_actor spawn_controller(caf::actor_system& system, controller_settings settings);

}  // namespace cedar::topology
