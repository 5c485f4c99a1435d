// What the server counts, as Prometheus reads it. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/session/service.hpp"

namespace cedar::http {

/// What a server has taken on and not done.
struct open_work {
  std::uint32_t answers = 0;  ///< admitted
  std::uint64_t tokens = 0;  ///< that those may take
  std::uint32_t downloads_running = 0;  ///< requests whose images are fetched
  std::uint32_t downloads_waiting = 0;  ///< requests that wait to fetch theirs
};

class metrics {
 public:
  metrics();
  ~metrics();

  void answered(const std::string& route, unsigned status);
  void prompt_taken(std::uint64_t tokens);
  void token_generated();
  void first_token(std::chrono::steady_clock::duration since_request);
  void generation_ended(std::chrono::steady_clock::duration since_request, const std::string& how);

  /// The text format, version 0.0.4.
  std::string text(const session::service_status& pipeline, const open_work& open);

 private:
  void show(const session::draft_totals& drafts);

  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace cedar::http
