// Which peers are alive, by what was heard of them and when. Pure: time comes in as an argument.
//
// A node that slept itself (stopped, suspended, starved of its core) finds on waking that it has
// heard of nobody; it must not blame the others. So a gap between two ticks of more than half the
// silence limit restarts every peer's silence.
#pragma once

#include <chrono>
#include <map>
#include <vector>

#include "runtime/base/ids.hpp"

namespace cedar::transport {

class liveness {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  liveness(std::chrono::nanoseconds heartbeat_interval, std::chrono::nanoseconds silence_limit,
           time_point now);

  void add(node_id peer, time_point now);
  void remove(node_id peer);
  void heard(node_id peer, time_point now);

  struct findings {
    bool heartbeat_due = false;  ///< send one to every peer
    std::vector<node_id> silent;  ///< not heard of for the limit; the caller removes them
  };
  /// To be called at least every heartbeat interval, after what arrived has been noted.
  findings tick(time_point now);

  /// When tick() has something to do next.
  time_point next_due() const;

 private:
  std::chrono::nanoseconds interval_;
  std::chrono::nanoseconds limit_;
  time_point last_tick_;
  time_point next_heartbeat_;
  std::map<node_id, time_point> last_heard_;
};

}  // namespace cedar::transport
