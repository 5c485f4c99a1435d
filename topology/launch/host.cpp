#include "topology/launch/host.hpp"

#include <arpa/inet.h>
#include <netdb.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace cedar::topology {

result<std::string> address_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (failed != 0)
    return fail(errc::not_found,
                "host '" + host + "' has no IPv4 address that this host knows of: " +
                    (failed == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(failed)));
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof address);
  ::freeaddrinfo(found);
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return std::string(text.data());
}

}  // namespace cedar::topology
