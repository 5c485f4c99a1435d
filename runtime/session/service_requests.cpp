#include "runtime/session/service_requests.hpp"

namespace cedar::session {

void service_requests::add(request_id ticket, request_id running, request_events events) {
  by_ticket_.emplace(ticket, running);
  running_.emplace(running, entry{ticket, std::move(events)});
}

void service_requests::row(const row_event& event) const {
  // Rows of a cancelled request may still be on their way.
  const auto found = running_.find(event.request);
  if (found != running_.end()) found->second.events.on_row(event);
}

void service_requests::finished(request_id running, const usage& used) {
  const auto found = running_.find(running);
  if (found == running_.end()) return;
  const entry ended = std::move(found->second);
  running_.erase(found);
  by_ticket_.erase(ended.ticket);
  ended.events.on_finished(used);
}

void service_requests::failed(request_id running, const error& what) {
  const auto given_up = running_.extract(running);
  if (given_up.empty()) return;
  by_ticket_.erase(given_up.mapped().ticket);
  given_up.mapped().events.on_failed(what);
}

std::optional<request_id> service_requests::cancel(request_id ticket) {
  const auto found = by_ticket_.find(ticket);
  if (found == by_ticket_.end()) return std::nullopt;
  const request_id running = found->second;
  by_ticket_.erase(found);
  const auto given_up = running_.extract(running);
  given_up.mapped().events.on_failed({errc::cancelled, "the request was cancelled"});
  return running;
}

void service_requests::fail_all(const error& what) {
  by_ticket_.clear();
  const auto given_up = std::exchange(running_, {});
  for (const auto& [running, each] : given_up) each.events.on_failed(what);
}

}  // namespace cedar::session
