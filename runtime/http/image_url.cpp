#include "runtime/http/image_url.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace cedar::http {

namespace {

constexpr std::size_t bytes_max = 4096;

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool begins_with(std::string_view text, std::string_view scheme) noexcept {
  return text.size() >= scheme.size() && std::equal(scheme.begin(), scheme.end(), text.begin(),
                                                    [](char a, char b) { return a == lower(b); });
}

bool is_port(std::string_view text) noexcept {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, port);
  return read.ec == std::errc{} && read.ptr == end && port != 0;
}

bool is_printable(char c) noexcept {
  return c > ' ' && c <= '~';
}

bool is_host(std::string_view text) noexcept {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  return !text.empty() && text.find_first_of("[]@\\\"<>^`{|}") == std::string_view::npos;
}

}  // namespace

bool is_web_url(std::string_view text) noexcept {
  return begins_with(text, "http://") || begins_with(text, "https://");
}

result<image_url> parse_image_url(std::string_view text) {
  const auto wrong = [](const std::string& why) { return fail(errc::invalid_argument, why); };
  if (!is_web_url(text)) return wrong("it is no http or https URL");
  if (text.size() > bytes_max)
    return wrong("the URL is longer than " + std::to_string(bytes_max) + " characters");
  if (!std::ranges::all_of(text, is_printable))
    return wrong("the URL has a character that no URL has; write it as %XX");
  image_url out;
  out.secure = begins_with(text, "https");
  std::string_view rest = text.substr(text.find("://") + 3);
  const std::size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  std::string_view authority = rest.substr(0, end);
  std::string_view target = rest.substr(end);
  target = target.substr(0, target.find('#'));
  out.target = target.starts_with('/') ? "" : "/";
  out.target += target;
  if (authority.find('@') != std::string_view::npos)
    return wrong("the URL names a user; nobody logs in for an image");
  const std::size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  const std::size_t colon =
      bracket == std::string_view::npos ? bracket : authority.find(':', bracket);
  out.port = out.secure ? "443" : "80";
  if (colon != std::string_view::npos) {
    out.port = authority.substr(colon + 1);
    if (!is_port(out.port)) return wrong("the URL's port is no number from 1 to 65535");
    authority = authority.substr(0, colon);
  }
  if (!is_host(authority)) return wrong("the URL names no host");
  std::ranges::transform(authority, std::back_inserter(out.host), lower);
  return out;
}

bool is_allowed(const image_url& url, const std::vector<std::string>& hosts) {
  const bool own_port = url.port == (url.secure ? "443" : "80");
  return std::ranges::any_of(hosts, [&](const std::string& host) {
    return (own_port && host == url.host) || host == url.host + ":" + url.port;
  });
}

}  // namespace cedar::http
