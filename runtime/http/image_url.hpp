// URLs of images on other servers, and which of them this server asks for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace cedar::http {

/// "http://HOST[:PORT]/PATH", or https.
struct image_url {
  bool secure = false;
  std::string host;  ///< lower case; an IPv6 address in brackets
  std::string port;
  std::string target;  ///< path and query, "/" at least
};

/// Whether the URL's scheme is http or https, in whatever letters.
bool is_web_url(std::string_view text) noexcept;

/// Errors: invalid_argument: no http(s) URL; a user or a password; no host; a port out of range;
/// a character that no URL has; longer than 4096.
result<image_url> parse_image_url(std::string_view text);

/// Whether `hosts` has the URL's host: "HOST" at its scheme's own port, "HOST:PORT" at that one.
bool is_allowed(const image_url& url, const std::vector<std::string>& hosts);

}  // namespace cedar::http
