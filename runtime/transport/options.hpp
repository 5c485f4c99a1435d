// What every port is told about itself and its limits. The numbers come from the plan.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/base/ids.hpp"

namespace cedar::transport {

/// Bytes that all nodes of a topology know and nobody else does.
using shared_secret = std::vector<std::byte>;

/// Shorter ones are refused.
inline constexpr std::size_t secret_bytes_min = 16;
/// Longer node names are refused: they travel in the handshake.
inline constexpr std::size_t node_name_bytes_max = 64;

struct port_options {
  node_id self;
  std::string name;  ///< of the node, for texts at both ends
  shared_secret secret;

  std::chrono::milliseconds heartbeat_interval{200};
  /// Silence after which a peer is lost.
  std::chrono::milliseconds silence_limit{1000};
  /// From an accepted connection to its proof of the secret.
  std::chrono::milliseconds handshake_limit{2000};

  std::size_t frame_bytes_max = std::size_t{256} << 20;  ///< larger ones arriving: peer dropped
  std::size_t queue_bytes_max = std::size_t{512}
                                << 20;  ///< per peer waiting to leave: peer dropped
};

}  // namespace cedar::transport
