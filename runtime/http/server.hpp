// The OpenAI-compatible surface over HTTP/1.1: routes, connections, deadlines, and the end.
//
//   POST /v1/completions, /v1/chat/completions   answers, whole or as server-sent events
//   GET  /v1/models, /v1/models/NAME             what is served
//   GET  /health                                 200 while the process can answer
//   GET  /ready                                  200 if every unit is up and requests are taken
//   GET  /metrics                                Prometheus
//
// 1. A client that goes away, also by closing only its sending side, gives its request up.
// 2. Everything is bounded: connections, headers, bodies, the time to send a request and to take an
//    answer, and (admission) answers and tokens that wait or run.
// 3. A request whose time has passed is given up, waiting or running: 503 with the code
//    "deadline_exceeded", or an error event at the end of its stream.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/result.hpp"
#include "runtime/http/admission.hpp"
#include "runtime/http/order.hpp"

namespace cedar::http {

struct server_options {
  std::string address = "127.0.0.1";  ///< an IP address
  std::uint16_t port = 8080;  ///< 0: any that is free
  std::uint32_t threads = 2;
  std::uint32_t connections_max = 1024;  ///< more wait in the operating system
  std::uint32_t header_bytes_max = 16U << 10U;
  std::uint64_t body_bytes_max = 4U << 20U;
  /// For a request's header, from the connection or the last answer on.
  std::chrono::milliseconds header_limit{60'000};
  std::chrono::milliseconds body_limit{30'000};
  /// For a client to take what has been sent.
  std::chrono::milliseconds write_limit{30'000};
  /// From a request's last byte until its answer is complete; 0: none. A request may ask for less.
  std::chrono::milliseconds request_limit{600'000};
  /// Hosts ("HOST" or "HOST:PORT", lower case) that images are fetched from, if a chat names them
  /// by http(s) URLs; none: only data URLs are taken.
  std::vector<std::string> image_hosts;
  /// For all images of a request together; their files have body_bytes_max at most.
  std::chrono::milliseconds download_limit{10'000};
  /// Requests whose images are fetched at once, 1 at least; others wait, within their time.
  std::uint32_t downloads_max = 8;
  /// Called for one request after the other, in a thread that serves no connection.
  image_decoder decoder = decode_images;
  admission_limits admitted;
  served_model model;
};

class server {
 public:
  /// Listens. `service` and `vocabulary` outlive the server. Errors: invalid_argument (the
  /// address), io (the port, with what to do).
  static result<std::unique_ptr<server>> open(session::generation_service& service,
                                              const text::tokenizer& vocabulary,
                                              const server_options& options);
  /// Gives up what is running; returns when the pipeline has let go of it.
  ~server();

  /// "127.0.0.1:8080"
  std::string address() const;

  /// Takes no more requests and waits for the answers that are being given; false if some were not
  /// given within `limit`.
  bool drain(std::chrono::milliseconds limit);

 private:
  struct parts;
  explicit server(std::unique_ptr<parts> everything);

  std::unique_ptr<parts> parts_;
};

}  // namespace cedar::http
