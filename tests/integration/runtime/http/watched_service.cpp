#include "tests/integration/runtime/http/watched_service.hpp"

#include <stdexcept>

#include "tests/integration/support/program.hpp"

namespace cedar::test {

template <class Condition>
void watched_service::wait(Condition condition, const char* what) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, condition)) throw std::runtime_error(what);
}

request_id watched_service::submit(session::generation_request request,
                                   session::request_events events) {
  std::uint32_t number = 0;
  {
    const std::scoped_lock lock(mutex_);
    number = ++submitted_;
  }
  auto on_row = std::move(events.on_row);
  events.on_row = [this, number, on_row](const session::row_event& row) {
    take_row(number);
    on_row(row);
  };
  const request_id ticket = inner_.submit(std::move(request), std::move(events));
  changed_.notify_all();
  return ticket;
}

void watched_service::cancel(request_id request) {
  inner_.cancel(request);
  const std::scoped_lock lock(mutex_);
  ++cancelled_;
  changed_.notify_all();
}

void watched_service::take_row(std::uint32_t request) {
  std::unique_lock lock(mutex_);
  const token_place here{request, ++tokens_[request]};
  if (hold_ != here) return;
  held_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return hold_ != here; });
}

void watched_service::hold_at(token_place place) {
  const std::scoped_lock lock(mutex_);
  hold_ = place;
}

void watched_service::wait_held() {
  wait([this] { return held_; }, "the pipeline did not come to the token");
}

void watched_service::release(std::optional<token_place> next) {
  const std::scoped_lock lock(mutex_);
  hold_ = next;
  held_ = false;
  changed_.notify_all();
}

void watched_service::wait_submitted(std::uint32_t count) {
  wait([&] { return submitted_ >= count; }, "too few requests were submitted");
}

void watched_service::wait_cancelled(std::uint32_t count) {
  wait([&] { return cancelled_ >= count; }, "too few requests were cancelled");
}

std::uint32_t watched_service::submitted() const {
  const std::scoped_lock lock(mutex_);
  return submitted_;
}

std::uint32_t watched_service::tokens(std::uint32_t request) const {
  const std::scoped_lock lock(mutex_);
  const auto found = tokens_.find(request);
  return found == tokens_.end() ? 0 : found->second;
}

}  // namespace cedar::test
