#include "runtime/transport/ucx/address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace cedar::transport::ucx {

result<sockaddr_in> to_sockaddr(const std::string& host, std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &out.sin_addr) != 1) {
    return fail(errc::invalid_argument, "'" + host + "' is not a numeric IPv4 address");
  }
  return out;
}

result<sockaddr_in> parse_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::uint16_t port = 0;
  if (colon != std::string::npos) {
    const char* first = address.data() + colon + 1;
    const char* last = address.data() + address.size();
    const auto parsed = std::from_chars(first, last, port);
    if (parsed.ec == std::errc() && parsed.ptr == last && port != 0) {
      return to_sockaddr(address.substr(0, colon), port);
    }
  }
  return fail(errc::invalid_argument, "'" + address + "' is not HOST:PORT");
}

std::string to_text(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return std::string(text.data()) + ":" + std::to_string(ntohs(address.sin_port));
}

result<void> check_free(const sockaddr_in& address) {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  const bool good = probe >= 0 &&
                    ::setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                    ::bind(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int reason = errno;
  if (probe >= 0) ::close(probe);
  if (good) return {};
  return fail(errc::io, "cannot listen on " + to_text(address) + ": " +
                            (reason == EADDRINUSE ? "the port is in use" : std::strerror(reason)));
}

namespace {

struct free_list {
  void operator()(ifaddrs* list) const noexcept { freeifaddrs(list); }
};

}  // namespace

result<std::string> device_of(const sockaddr_in& address) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    return fail(errc::io, std::string("cannot list network devices: ") + std::strerror(errno));
  }
  const std::unique_ptr<ifaddrs, free_list> list(first);
  // Every address 127.x.y.z is the loopback device's, whichever of them it lists.
  const bool loopback = (ntohl(address.sin_addr.s_addr) >> 24) == 127;
  for (const ifaddrs* at = list.get(); at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in own{};
    std::memcpy(&own, at->ifa_addr, sizeof own);
    const bool same = own.sin_addr.s_addr == address.sin_addr.s_addr;
    if (!same && !(loopback && (at->ifa_flags & IFF_LOOPBACK) != 0)) continue;
    // UCX would leave it out, and nobody would ever connect.
    if ((at->ifa_flags & IFF_RUNNING) == 0)
      return fail(errc::io, "network device '" + std::string(at->ifa_name) +
                                "' with the address of " + to_text(address) +
                                " is down or has no carrier");
    return std::string(at->ifa_name);
  }
  return fail(errc::invalid_argument,
              "no network device of this host has the address of " + to_text(address));
}

}  // namespace cedar::transport::ucx
