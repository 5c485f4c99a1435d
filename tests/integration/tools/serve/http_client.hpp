// A client of HTTP/1.1 over a plain socket, so that tests see every byte and can leave at any
// moment.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cedar::test {

struct http_reply {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;  ///< without chunk framing
};

/// One connection. Whatever fails throws; waits end after our patience.
class http_client {
 public:
  explicit http_client(std::uint16_t port);
  ~http_client();
  http_client(const http_client&) = delete;
  http_client& operator=(const http_client&) = delete;

  void send(const std::string& method, const std::string& path, const std::string& body = {});
  void send_raw(const std::string& bytes);
  http_reply receive();
  /// Reads until what has come since the last reply holds `text`.
  void wait_for(const std::string& text);
  /// True if the server closes the connection.
  bool closed();

 private:
  bool read_more();

  int socket_;
  std::string received_;
};

/// One request on a connection of its own.
http_reply exchange(std::uint16_t port, const std::string& method, const std::string& path,
                    const std::string& body = {});

/// The data of server-sent events.
std::vector<std::string> events_of(const std::string& stream);

}  // namespace cedar::test
