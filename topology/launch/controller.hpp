// Where nodes report to: lets in who knows the secret, passes on what they say.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "runtime/transport/options.hpp"
#include "topology/launch/control.hpp"

namespace cedar::topology {

struct controller_settings {
  transport::shared_secret secret;
  std::set<std::string> nodes;  ///< that may join, each once
  std::function<void(const std::string& node, const agent_actor&)> on_joined;
  std::function<void(const actors::fault&)> on_fault;
};

controller_actor spawn_controller(caf::actor_system& system, controller_settings settings);

}  // namespace cedar::topology
