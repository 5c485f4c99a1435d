// IPv4 addresses as text, as the sockets' structures, and the network device that holds one.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>

#include "runtime/base/result.hpp"

namespace cedar::transport::ucx {

/// "127.0.0.1", 40913 -> structure. Errors: invalid_argument (names are not looked up here).
result<sockaddr_in> to_sockaddr(const std::string& host, std::uint16_t port);

/// "127.0.0.1:40913" -> structure. Errors: invalid_argument.
result<sockaddr_in> parse_address(const std::string& address);

/// "127.0.0.1:40913".
std::string to_text(const sockaddr_in& address);

/// Whether somebody could listen there now: UCX would report a port in use on standard error
/// itself. Errors: io, naming address and reason.
result<void> check_free(const sockaddr_in& address);

/// Name of the device with this address, e.g. "lo". One device, not all: UCX would spread large
/// frames over every device it may use. Errors: invalid_argument (no device of this host has it),
/// io (it is down).
result<std::string> device_of(const sockaddr_in& address);

}  // namespace cedar::transport::ucx
