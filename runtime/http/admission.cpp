#include "runtime/http/admission.hpp"

#include <fmt/format.h>

namespace cedar::http {

api_result<std::unique_ptr<admission::place>> admission::enter(std::uint32_t requests,
                                                               std::uint64_t tokens) {
  const std::scoped_lock lock(mutex_);
  if (requests > limits_.requests_max || tokens > limits_.tokens_max)
    return tl::unexpected(bad_request(
        fmt::format("the request asks for {} answers and {} tokens in all; this server takes at "
                    "most {} and {}",
                    requests, tokens, limits_.requests_max, limits_.tokens_max)));
  if (requests_ + requests > limits_.requests_max || tokens_ + tokens > limits_.tokens_max)
    return tl::unexpected(overloaded(
        fmt::format("the server has {} answers of {} tokens to give already; try again later",
                    requests_, tokens_)));
  requests_ += requests;
  tokens_ += tokens;
  return std::make_unique<place>(*this, requests, tokens);
}

void admission::leave(std::uint32_t requests, std::uint64_t tokens) {
  const std::scoped_lock lock(mutex_);
  requests_ -= requests;
  tokens_ -= tokens;
  // Under the lock: who waits may end the door.
  if (requests_ == 0) empty_.notify_all();
}

void admission::wait_empty() {
  std::unique_lock lock(mutex_);
  empty_.wait(lock, [this] { return requests_ == 0; });
}

std::uint32_t admission::requests() const {
  const std::scoped_lock lock(mutex_);
  return requests_;
}

std::uint64_t admission::tokens() const {
  const std::scoped_lock lock(mutex_);
  return tokens_;
}

}  // namespace cedar::http
