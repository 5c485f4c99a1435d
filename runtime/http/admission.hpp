// The decision at the door: how much may be waiting or running at once. What does not fit is told
// to come back, before it costs anything.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "runtime/http/api_error.hpp"

namespace cedar::http {

struct admission_limits {
  std::uint32_t requests_max = 256;  ///< answers that are waiting or running (`n` counts each)
  std::uint64_t tokens_max = 1'000'000;  ///< their prompts and the most they may generate
};

/// Thread-safe; outlives what it admits.
class admission {
 public:
  explicit admission(const admission_limits& limits) : limits_(limits) {}

  /// Gives back when it goes.
  class place {
   public:
    place(admission& door, std::uint32_t requests, std::uint64_t tokens)
        : door_(&door), requests_(requests), tokens_(tokens) {}
    ~place() { door_->leave(requests_, tokens_); }
    place(const place&) = delete;
    place& operator=(const place&) = delete;

   private:
    admission* door_;
    std::uint32_t requests_;
    std::uint64_t tokens_;
  };

  /// Errors: 429; 400 for more than can ever fit.
  api_result<std::unique_ptr<place>> enter(std::uint32_t requests, std::uint64_t tokens);

  std::uint32_t requests() const;
  std::uint64_t tokens() const;
  /// Returns when everything that was admitted has gone.
  void wait_empty();

 private:
  void leave(std::uint32_t requests, std::uint64_t tokens);

  admission_limits limits_;
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  std::uint32_t requests_ = 0;
  std::uint64_t tokens_ = 0;
};

}  // namespace cedar::http
