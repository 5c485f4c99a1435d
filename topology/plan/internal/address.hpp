// What kind of address a node has, judged by its text alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cedar::topology::internal {

enum class address_kind : std::uint8_t {
  loopback,  ///< localhost, 127.0.0.0/8, ::1: no other host can reach it
  remote,  ///< any other IP address or host name
  any,  ///< 0.0.0.0 or ::, an address to bind to, not to reach
  malformed,  ///< neither an IP address nor a host name
};

address_kind classify_address(const std::string& address);

struct endpoint {
  std::string host;
  std::uint16_t port = 0;
};

/// "10.0.0.1:7000" in its parts. The host is not judged; none if there is no host or no port.
std::optional<endpoint> split_endpoint(const std::string& text);

}  // namespace cedar::topology::internal
