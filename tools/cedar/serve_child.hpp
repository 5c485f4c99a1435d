// `cedar serve` as a child process, for a command that needs a server of its own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/http/client/url.hpp"

namespace cedar::tools {

/// Resident memory of a process and of all its descendants, as they are now.
struct memory_sample {
  std::uint32_t processes = 0;
  std::uint64_t bytes = 0;
};
memory_sample memory_of(pid_t root);

class serve_child {
 public:
  /// Starts `cedar serve ARGUMENTS --listen 127.0.0.1:0` and returns when it takes requests. What
  /// it has to say goes to standard error. It is told to stop when this thread ends, however that
  /// happens. Errors: io; refused (it ended before it listened; it has said why).
  static result<std::unique_ptr<serve_child>> start(std::vector<std::string> arguments);
  /// Kills it if it has not been stopped.
  ~serve_child();
  serve_child(const serve_child&) = delete;
  serve_child& operator=(const serve_child&) = delete;

  const http::server_url& url() const noexcept { return url_; }
  memory_sample memory() const { return memory_of(pid_); }

  /// Tells it to stop and waits; errors: timeout (it was killed), peer_lost (it did not end with
  /// 0).
  result<void> stop(std::chrono::milliseconds limit);

 private:
  explicit serve_child(pid_t pid) : pid_(pid) {}

  result<void> wait_listening(int output);

  pid_t pid_;
  http::server_url url_;
};

}  // namespace cedar::tools
