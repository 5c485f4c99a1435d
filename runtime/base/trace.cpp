#include "runtime/base/trace.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace cedar {

std::string_view to_string(trace_kind kind) noexcept {
  switch (kind) {
    case trace_kind::compute:
      return "compute";
    case trace_kind::wait:
      return "wait";
    case trace_kind::message:
      return "message";
  }
  return "?";
}

void trace_recorder::add(trace_event event) {
  if (!on()) return;
  const std::scoped_lock lock(mutex_);
  if (events_.size() >= events_max_) {
    ++dropped_;
    return;
  }
  events_.push_back(std::move(event));
}

std::vector<trace_event> trace_recorder::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(events_, {});
}

std::uint64_t trace_recorder::dropped() const {
  const std::scoped_lock lock(mutex_);
  return dropped_;
}

void trace_recorder::count(const std::string& edge, std::uint64_t bytes, std::uint64_t waited_us) {
  const std::scoped_lock lock(mutex_);
  edge_total& total = totals_[edge];
  ++total.messages;
  total.bytes += bytes;
  total.waited_us += waited_us;
}

std::vector<edge_total> trace_recorder::totals() const {
  const std::scoped_lock lock(mutex_);
  std::vector<edge_total> out;
  for (const auto& [edge, total] : totals_) {
    out.push_back(total);
    out.back().edge = edge;
  }
  return out;
}

void trace_recorder::count(const std::string& unit, const engram_counts& more) {
  if (more == engram_counts{}) return;
  const std::scoped_lock lock(mutex_);
  engram_[unit] += more;
}

std::map<std::string, engram_counts> trace_recorder::engram() const {
  const std::scoped_lock lock(mutex_);
  return engram_;
}

void trace_recorder::hold(const std::string& unit, const cache_bytes& bytes) {
  const std::scoped_lock lock(mutex_);
  const auto known = held_.find(unit);
  if (known != held_.end())
    known->second = bytes;
  else if (bytes != cache_bytes{})
    held_.emplace(unit, bytes);
}

std::map<std::string, cache_bytes> trace_recorder::held() const {
  const std::scoped_lock lock(mutex_);
  return held_;
}

namespace {

/// Process and thread names of the viewer are metadata events.
nlohmann::json name_event(const char* what, int process, int thread, const std::string& name) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

nlohmann::json span_event(const trace_event& event, int process, int thread, std::int64_t origin) {
  nlohmann::json args{{"step", event.step}};
  if (event.kind == trace_kind::message) args["bytes"] = event.bytes;
  if (event.rows > 0) {
    args["rows"] = event.rows;
    args["decoder_rows"] = event.decoder_rows;
  }
  return {{"ph", "X"},
          {"name", "step " + std::to_string(event.step)},
          {"cat", std::string(to_string(event.kind))},
          {"pid", process},
          {"tid", thread},
          {"ts", event.begin_us - origin},
          {"dur", event.duration_us},
          {"args", std::move(args)}};
}

}  // namespace

std::string to_chrome_json(const std::vector<trace_process>& processes) {
  std::int64_t origin = std::numeric_limits<std::int64_t>::max();
  for (const trace_process& process : processes)
    for (const trace_event& event : process.events) origin = std::min(origin, event.begin_us);
  nlohmann::json events = nlohmann::json::array();
  int pid = 0;
  for (const trace_process& process : processes) {
    events.push_back(name_event("process_name", ++pid, 0, process.name));
    std::map<std::string, int> threads;
    for (const trace_event& event : process.events) {
      const auto [thread, fresh] =
          threads.try_emplace(event.track, static_cast<int>(threads.size()) + 1);
      if (fresh) events.push_back(name_event("thread_name", pid, thread->second, event.track));
      events.push_back(span_event(event, pid, thread->second, origin));
    }
  }
  return nlohmann::json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}.dump();
}

}  // namespace cedar
