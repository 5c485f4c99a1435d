#include "tests/integration/tools/serve/http_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>

#include "tests/integration/support/program.hpp"

namespace cedar::test {

namespace {

void check(bool good, const char* what) {
  if (!good) throw std::system_error(errno, std::generic_category(), what);
}

std::string take_chunks(std::string& bytes, bool& complete) {
  std::string out;
  std::size_t at = 0;
  complete = false;
  while (true) {
    const std::size_t line = bytes.find("\r\n", at);
    if (line == std::string::npos) return out;
    const std::size_t size = std::stoul(bytes.substr(at, line - at), nullptr, 16);
    if (bytes.size() < line + 2 + size + 2) return out;
    out += bytes.substr(line + 2, size);
    at = line + 2 + size + 2;
    if (size > 0) continue;
    complete = true;
    bytes.erase(0, at);
    return out;
  }
}

}  // namespace

http_client::http_client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  check(socket_ >= 0, "socket");
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval limit{std::chrono::duration_cast<std::chrono::seconds>(patience).count(), 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return;
  const int why = errno;
  ::close(socket_);
  throw std::system_error(why, std::generic_category(), "connect");
}

http_client::~http_client() {
  ::close(socket_);
}

void http_client::send_raw(const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t some = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    check(some > 0, "send");
    sent += static_cast<std::size_t>(some);
  }
}

void http_client::send(const std::string& method, const std::string& path,
                       const std::string& body) {
  send_raw(method + " " + path + " HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n" +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

bool http_client::read_more() {
  char bytes[65536];
  ssize_t some = 0;
  // With a limit of time it is not begun again after a signal, such as of a child's end.
  do some = ::recv(socket_, bytes, sizeof bytes, 0);
  while (some < 0 && errno == EINTR);
  check(some >= 0, "recv");
  received_.append(bytes, static_cast<std::size_t>(some));
  return some > 0;
}

bool http_client::closed() {
  return !read_more();
}

void http_client::wait_for(const std::string& text) {
  while (received_.find(text) == std::string::npos)
    if (!read_more()) throw std::runtime_error("the server closed; it had said: " + received_);
}

http_reply http_client::receive() {
  wait_for("\r\n\r\n");
  http_reply out;
  const std::size_t header_end = received_.find("\r\n\r\n");
  const std::string header = received_.substr(0, header_end + 2);
  received_.erase(0, header_end + 4);
  out.status = std::stoi(header.substr(header.find(' ') + 1));
  for (std::size_t at = header.find("\r\n") + 2; at < header.size();) {
    const std::size_t end = header.find("\r\n", at);
    const std::size_t colon = header.find(": ", at);
    std::string name = header.substr(at, colon - at);
    std::ranges::transform(name, name.begin(), [](char c) { return std::tolower(c); });
    out.headers[name] = header.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  if (out.headers.contains("content-length")) {
    const std::size_t size = std::stoul(out.headers["content-length"]);
    while (received_.size() < size)
      if (!read_more()) throw std::runtime_error("the server closed within a body");
    out.body = received_.substr(0, size);
    received_.erase(0, size);
    return out;
  }
  bool complete = false;
  while (out.body = take_chunks(received_, complete), !complete)
    if (!read_more()) throw std::runtime_error("the server closed within a stream");
  return out;
}

http_reply exchange(std::uint16_t port, const std::string& method, const std::string& path,
                    const std::string& body) {
  http_client client(port);
  client.send(method, path, body);
  return client.receive();
}

std::vector<std::string> events_of(const std::string& stream) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t end = stream.find("\n\n", at);
    if (end == std::string::npos || stream.substr(at, 6) != "data: ")
      throw std::runtime_error("no event at " + std::to_string(at) + ": " + stream);
    out.push_back(stream.substr(at + 6, end - at - 6));
    at = end + 2;
  }
  return out;
}

}  // namespace cedar::test
