// What happened when, step by step: computing of units, waiting for inputs, messages on edges.
//
// 1. Times are microseconds of the monotonic clock, which all processes of one host share.
// 2. A recorder is bounded: events beyond the bound are counted, not kept.
// 3. Recording never changes what is computed. Off, it costs one branch.
// 4. What passed each edge in all is counted always, and so is what each unit holds and had to do
//    with Engram's tables.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/cache_bytes.hpp"
#include "runtime/base/engram_counts.hpp"

namespace cedar {

enum class trace_kind : std::uint8_t {
  compute,  ///< a unit worked on a step
  wait,  ///< a unit had some inputs of a step and waited for the others
  message,  ///< a message left on an edge; the duration is its wait for credit
};

std::string_view to_string(trace_kind kind) noexcept;

struct trace_event {
  trace_kind kind = trace_kind::compute;
  std::string track;  ///< unit or edge
  std::uint64_t step = 0;
  std::int64_t begin_us = 0;
  std::int64_t duration_us = 0;
  std::uint64_t bytes = 0;  ///< message: credit bytes; else 0
  std::uint32_t rows = 0;  ///< rows of the step, where known
  std::uint32_t decoder_rows = 0;  ///< of them, those that walk the decoder
};

/// What left on an edge since the process began.
struct edge_total {
  std::string edge;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;  ///< credit bytes
  std::uint64_t waited_us = 0;  ///< for credit, of all messages together
};

using trace_clock = std::chrono::steady_clock;

inline std::int64_t trace_us(trace_clock::time_point time) noexcept {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

/// Thread-safe.
class trace_recorder {
 public:
  /// `events_max` 0: off.
  explicit trace_recorder(std::size_t events_max) : events_max_(events_max) {}

  bool on() const noexcept { return events_max_ > 0; }
  void add(trace_event event);

  /// Takes what was recorded so far.
  std::vector<trace_event> take();
  std::uint64_t dropped() const;

  /// A message left on `edge`.
  void count(const std::string& edge, std::uint64_t bytes, std::uint64_t waited_us);
  /// By name.
  std::vector<edge_total> totals() const;

  /// What `unit` did for Engram, or because of it, beyond what was counted.
  void count(const std::string& unit, const engram_counts& more);
  /// By unit, of those that have to do with it.
  std::map<std::string, engram_counts> engram() const;

  /// What `unit` holds from now on.
  void hold(const std::string& unit, const cache_bytes& bytes);
  /// By unit, of those that ever held anything.
  std::map<std::string, cache_bytes> held() const;

 private:
  std::size_t events_max_;
  mutable std::mutex mutex_;
  std::vector<trace_event> events_;
  std::uint64_t dropped_ = 0;
  std::map<std::string, edge_total> totals_;
  std::map<std::string, cache_bytes> held_;
  std::map<std::string, engram_counts> engram_;
};

/// Events of one process.
struct trace_process {
  std::string name;
  std::vector<trace_event> events;
};

/// The Chrome and Perfetto "trace event" JSON of all processes.
std::string to_chrome_json(const std::vector<trace_process>& processes);

}  // namespace cedar
