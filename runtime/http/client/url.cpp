#include "runtime/http/client/url.hpp"

#include <charconv>
#include <cstdint>

namespace cedar::http {

namespace {

constexpr std::string_view scheme = "http://";

bool is_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, port);
  return read.ec == std::errc{} && read.ptr == end && port != 0;
}

}  // namespace

std::string server_url::text() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return std::string(scheme) + (is_ipv6 ? "[" + host + "]" : host) + ":" + port;
}

result<server_url> parse_server_url(std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    return fail(errc::invalid_argument,
                "'" + std::string(text) + "': " + why + "; write http://HOST:PORT");
  };
  std::string_view rest = text;
  const std::size_t scheme_end = rest.find("://");
  if (scheme_end != std::string_view::npos) {
    if (!rest.starts_with(scheme))
      return wrong("only http:// can be asked, no " + std::string(rest.substr(0, scheme_end + 3)));
    rest.remove_prefix(scheme.size());
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#@") != std::string_view::npos)
    return wrong("a path or a user is too much");
  server_url out{std::string(rest), "80"};
  const std::size_t bracket = rest.starts_with('[') ? rest.find(']') : 0;
  if (bracket == std::string_view::npos) return wrong("']' is missing");
  const std::size_t colon = rest.find(':', bracket);
  if (colon != std::string_view::npos) {
    out.host = rest.substr(0, colon);
    out.port = rest.substr(colon + 1);
    if (!is_port(out.port)) return wrong("the port is no number from 1 to 65535");
  }
  if (bracket > 0) {
    if (out.host.size() != bracket + 1) return wrong("there is text behind ']'");
    out.host = out.host.substr(1, bracket - 1);
  }
  if (out.host.empty()) return wrong("there is no host");
  return out;
}

}  // namespace cedar::http
