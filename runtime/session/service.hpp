// Generations that come and go at any time: what a server needs of the engine in this process, or
// of a pipeline of actors. (generator.hpp runs a batch to its end.)
//
// 1. submit(), cancel() and status() may be called from any thread, also from within an event; they
//    do not wait for the pipeline.
// 2. Events of all requests come from one thread, those of a request in order. They must not block,
//    and must not throw.
// 3. Every request that was submitted ends in exactly one on_finished or on_failed, the last of its
//    events.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/cache_bytes.hpp"
#include "runtime/base/engram_counts.hpp"
#include "runtime/base/result.hpp"
#include "runtime/session/request.hpp"
#include "runtime/session/step_scheduler.hpp"

namespace cedar::session {

struct request_events {
  std::function<void(const row_event&)> on_row;
  std::function<void(const usage&)> on_finished;
  /// Errors: those of step_scheduler::submit (invalid_argument, capacity: the request never ran);
  /// cancelled; why the pipeline cannot go on (peer_lost, timeout, ...).
  std::function<void(const error&)> on_failed;
};

/// A placed part of the pipeline.
struct unit_status {
  std::string unit;
  std::string node;
  bool up = false;
  cache_bytes caches{};  ///< while requests run, at most some seconds old
  engram_counts engram{};  ///< since it was started first; likewise
};

/// What left on an edge between two placed parts since they were started.
struct edge_status {
  std::string edge;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t waited_us = 0;  ///< for credit, of all messages together
};

/// A link between two nodes as it was at the start, from the one to the other.
struct link_status {
  std::string node;
  std::string peer;
  double round_trip_seconds = 0;  ///< of few bytes, the median
  double bytes_per_second = 0;  ///< by the largest frame that was measured
};

struct service_status {
  std::vector<unit_status> units;
  std::string problem;  ///< why nothing can be generated now; empty: all is well
  scheduler_load load;
  std::uint64_t recoveries = 0;  ///< times that the pipeline failed and came back
  std::map<std::string, std::uint64_t> node_losses{};  ///< times that each node was lost
  /// Times that two nodes lost each other, by their names; pairs that exchange messages, without
  /// the one that takes requests: whom that loses is a lost node.
  std::map<std::pair<std::string, std::string>, std::uint64_t> link_losses{};
  std::vector<edge_status> edges{};  ///< by name; while requests run, at most some seconds old
  std::uint64_t kv_positions_max = 0;  ///< of all requests together; 0: no bound
  std::vector<link_status> links{};  ///< of nodes that exchange messages, each direction
};

/// What somebody who takes requests must know of the pipeline.
struct service_limits {
  std::uint32_t context_max = 1;  ///< positions of one request, prompt included
  std::uint32_t vocabulary = 0;
  std::uint64_t kv_positions_max = 0;  ///< of all requests together; 0: no bound
  token_id image_token = -1;  ///< stands for positions of images; -1: no id does
  /// How images are planned; nothing: nobody here reads images.
  std::optional<image::image_rules> images = std::nullopt;
};

inline service_limits service_limits_of(const scheduler_limits& limits) {
  return {limits.context_max, limits.vocabulary, limits.kv_positions(), limits.image_token,
          limits.images};
}

class generation_service {
 public:
  virtual ~generation_service() = default;

  virtual service_limits limits() const = 0;
  /// The id is the service's own, for cancel(); events of the request may come before it returns.
  virtual request_id submit(generation_request request, request_events events) = 0;
  /// Gives a request up, everywhere within one step; it ends with errc::cancelled unless it has
  /// ended by itself.
  virtual void cancel(request_id request) = 0;
  virtual service_status status() const = 0;
};

}  // namespace cedar::session
