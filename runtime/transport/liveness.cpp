#include "runtime/transport/liveness.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"

namespace cedar::transport {

liveness::liveness(std::chrono::nanoseconds heartbeat_interval,
                   std::chrono::nanoseconds silence_limit, time_point now)
    : interval_(heartbeat_interval),
      limit_(silence_limit),
      last_tick_(now),
      next_heartbeat_(now + heartbeat_interval) {
  CEDAR_REQUIRE(heartbeat_interval.count() > 0 && silence_limit > 2 * heartbeat_interval,
                "the silence limit allows for two lost heartbeats");
}

void liveness::add(node_id peer, time_point now) {
  last_heard_[peer] = now;
}

void liveness::remove(node_id peer) {
  last_heard_.erase(peer);
}

void liveness::heard(node_id peer, time_point now) {
  const auto found = last_heard_.find(peer);
  if (found != last_heard_.end()) found->second = now;
}

liveness::findings liveness::tick(time_point now) {
  if (now - last_tick_ > limit_ / 2) {
    for (auto& [peer, heard] : last_heard_) heard = now;
  }
  last_tick_ = now;
  findings out;
  if (now >= next_heartbeat_) {
    out.heartbeat_due = true;
    next_heartbeat_ = now + interval_;
  }
  for (const auto& [peer, heard] : last_heard_) {
    if (now - heard >= limit_) out.silent.push_back(peer);
  }
  return out;
}

liveness::time_point liveness::next_due() const {
  time_point due = next_heartbeat_;
  for (const auto& [peer, heard] : last_heard_) due = std::min(due, heard + limit_);
  return due;
}

}  // namespace cedar::transport
