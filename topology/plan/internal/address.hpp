// What kind of address a node has, judged by its text alone.
#pragma once

#include <cstdint>
#include <string>

namespace cedar::topology::internal {

enum class address_kind : std::uint8_t {
  loopback,  ///< localhost, 127.0.0.0/8, ::1: no other host can reach it
  remote,  ///< any other IP address or host name
  any,  ///< 0.0.0.0 or ::, an address to bind to, not to reach
  malformed,  ///< neither an IP address nor a host name
};

address_kind classify_address(const std::string& address);

}  // namespace cedar::topology::internal
