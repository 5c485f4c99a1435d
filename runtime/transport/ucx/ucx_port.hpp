// The port over UCX active messages, between processes and hosts.
//
// One thread owns the worker; it spins at most 20 us, then sleeps until the network or send() wakes
// it. Everything binds to the address given, loopback unless the topology says otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/transport/options.hpp"
#include "runtime/transport/port.hpp"

namespace cedar::transport::ucx {

/// Between which hosts frames can travel, and by what.
enum class reach : std::uint8_t {
  network,  ///< TCP, also between processes of one host
  shared_host,  ///< shared memory between processes of one host, TCP to others
};

struct ucx_options {
  std::string bind_address = "127.0.0.1";  ///< IPv4, numeric
  std::uint16_t bind_port = 0;  ///< 0: the system chooses
  reach carry = reach::network;
  /// Network devices that may be used ("lo", "eth0"); empty: any. It is the one that has the bind
  /// address.
  std::vector<std::string> devices;
};

/// Opens the port: when it returns, the node listens. `handler` outlives the port.
/// Errors: invalid_argument (secret, name, address, device), io (address in use or not ours; UCX
/// failed).
result<std::unique_ptr<port>> open_port(const port_options& common, const ucx_options& options,
                                        port_handler& handler);

}  // namespace cedar::transport::ucx
