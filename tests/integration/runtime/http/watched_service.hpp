// A generation service between the server and another one, which shows what passes and can hold the
// pipeline's thread at a token of a request.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "runtime/session/service.hpp"

namespace cedar::test {

/// A token of a request: requests and their tokens count from 1.
struct token_place {
  std::uint32_t request = 0;
  std::uint32_t token = 0;

  friend bool operator==(const token_place&, const token_place&) = default;
};

/// Thread-safe. Waits throw after our patience.
class watched_service final : public session::generation_service {
 public:
  explicit watched_service(session::generation_service& inner) : inner_(inner) {}

  session::service_limits limits() const override { return inner_.limits(); }
  request_id submit(session::generation_request request, session::request_events events) override;
  void cancel(request_id request) override;
  session::service_status status() const override { return inner_.status(); }

  /// The pipeline's thread will stop there, before the token is passed on, until release().
  void hold_at(token_place place);
  void wait_held();
  /// Lets the pipeline go on, to `next` if that is given.
  void release(std::optional<token_place> next = std::nullopt);

  void wait_submitted(std::uint32_t count);
  void wait_cancelled(std::uint32_t count);
  /// Requests that were submitted so far.
  std::uint32_t submitted() const;
  /// Tokens that the pipeline has made for a request.
  std::uint32_t tokens(std::uint32_t request) const;

 private:
  template <class Condition>
  void wait(Condition condition, const char* what);
  void take_row(std::uint32_t request);

  session::generation_service& inner_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<token_place> hold_;
  bool held_ = false;
  std::uint32_t submitted_ = 0;
  std::uint32_t cancelled_ = 0;
  std::map<std::uint32_t, std::uint32_t> tokens_;
};

}  // namespace cedar::test
