// Bookkeeping that every generation_service needs: which request of the scheduler is whose.
//
// Not thread-safe: it belongs to the thread that calls the events.
#pragma once

#include <map>

#include "runtime/session/service.hpp"

namespace cedar::session {

class service_requests {
 public:
  /// `ticket`: the service's id; `running`: the scheduler's.
  void add(request_id ticket, request_id running, request_events events);

  void row(const row_event& event) const;
  void finished(request_id running, const usage& used);
  void failed(request_id running, const error& what);
  /// Ends a request with errc::cancelled; returns the scheduler's id, or nothing if it has ended.
  std::optional<request_id> cancel(request_id ticket);
  /// Ends all of them with `what`.
  void fail_all(const error& what);

  std::size_t size() const noexcept { return running_.size(); }

 private:
  struct entry {
    request_id ticket;
    request_events events;
  };
  std::map<request_id, entry> running_;
  std::map<request_id, request_id> by_ticket_;
};

}  // namespace cedar::session
