// Where an HTTP server is: "http://HOST:PORT".
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace cedar::http {

struct server_url {
  std::string host;  ///< a name or an IP address, the latter without brackets
  std::string port;  ///< digits

  /// "http://[::1]:8080"
  std::string text() const;
};

/// "http://HOST[:PORT][/]"; "http://" may be missing, and the port is 80 then as otherwise. Errors:
/// invalid_argument (another scheme, a path, no host, a port out of range).
result<server_url> parse_server_url(std::string_view text);

}  // namespace cedar::http
