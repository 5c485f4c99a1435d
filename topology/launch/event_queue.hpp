// News for the client's thread, from actors and transport threads.
//
// Holds at most one event per row that was asked for plus one per node and request: a consumer that
// stalls is met by nothing more than the answers it asked for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

namespace cedar::topology {

template <class Event>
class event_queue {
 public:
  void push(Event event) {
    {
      const std::scoped_lock lock(mutex_);
      events_.push_back(std::move(event));
    }
    arrived_.notify_one();
  }

  /// The oldest event, waited for until `limit`.
  std::optional<Event> pop(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, limit, [this] { return !events_.empty(); })) return std::nullopt;
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Event> events_;
};

}  // namespace cedar::topology
