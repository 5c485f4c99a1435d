#include "topology/plan/internal/address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace cedar::topology::internal {

namespace {

bool is_host_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

/// RFC 1123: labels of 1 to 63 letters, digits and inner hyphens; 253 bytes in all. A name whose
/// last label is a number would be read as an IPv4 address by some programs and is none here.
bool is_host_name(std::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  std::string_view label;
  for (std::string_view rest = name; !rest.empty();) {
    const std::size_t dot = rest.find('.');
    label = rest.substr(0, dot);
    const bool valid = !label.empty() && label.size() <= 63 && label.front() != '-' &&
                       label.back() != '-' &&
                       std::all_of(label.begin(), label.end(), is_host_letter);
    if (!valid || dot + 1 == rest.size()) return false;
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  }
  return !std::all_of(label.begin(), label.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

address_kind classify_address(const std::string& address) {
  in_addr v4{};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    const std::uint32_t bits = ntohl(v4.s_addr);
    if (bits == INADDR_ANY) return address_kind::any;
    return bits >> 24U == 127 ? address_kind::loopback : address_kind::remote;
  }
  in6_addr v6{};
  if (inet_pton(AF_INET6, address.c_str(), &v6) == 1) {
    if (IN6_IS_ADDR_UNSPECIFIED(&v6)) return address_kind::any;
    const bool mapped_loopback = IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(&v6) || mapped_loopback ? address_kind::loopback
                                                        : address_kind::remote;
  }
  if (address == "localhost") return address_kind::loopback;
  return is_host_name(address) ? address_kind::remote : address_kind::malformed;
}

std::optional<endpoint> split_endpoint(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  endpoint out{text.substr(0, colon), 0};
  const char* const last = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, last, out.port);
  if (read.ec != std::errc{} || read.ptr != last) return std::nullopt;
  return out;
}

}  // namespace cedar::topology::internal
