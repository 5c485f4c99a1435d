// Asks one HTTP/1.1 server, many requests at once, in the thread that calls run().
//
// 1. Every request has its own connection, and ends in exactly one on_end, the last of its events;
//    unless run() is left by stop(), then there are none any more.
// 2. Events and timers may send more requests and set more timers; they are called within run().
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/http/client/url.hpp"

namespace cedar::http {

struct client_request {
  std::string path;  ///< "/ready"
  std::string body;  ///< JSON; empty: GET, otherwise POST
  std::chrono::milliseconds limit{10'000};  ///< from connecting to the last byte
};

struct client_events {
  std::function<void(unsigned status)> on_status;
  /// More of the body, without the framing of its transfer; gone when this returns.
  std::function<void(std::string_view bytes)> on_bytes;
  /// Errors: not_found (no such host, nothing listens there), peer_lost (the server closed within
  /// the answer, or reset the connection), malformed (what came is no HTTP), timeout (the limit),
  /// io.
  std::function<void(const result<void>&)> on_end;
};

class client {
 public:
  explicit client(server_url to);
  ~client();
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  void send(client_request what, client_events events);
  void at(std::chrono::steady_clock::time_point when, std::function<void()> what);

  /// Returns when no request and no timer is left, or after stop().
  void run();
  /// From any thread. What is pending is given up.
  void stop();

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

struct client_reply {
  unsigned status = 0;
  std::string body;
};

/// One request to its end. Errors: those of on_end; malformed: a body above 16 MiB.
result<client_reply> ask(const server_url& server, const client_request& what);

}  // namespace cedar::http
