// How a cluster learns what steps cost before it is ready (session::cost_measurement).
#include <algorithm>

#include "topology/launch/cluster.hpp"

namespace cedar::topology {

namespace {

/// A step that pages weights in may take as long as it likes: nobody waits for it.
constexpr std::chrono::seconds measuring_limit{3};
/// How often the wait looks whether a child has ended.
constexpr std::chrono::milliseconds child_interval{50};

using wait_clock = std::chrono::steady_clock;

}  // namespace

result<void> cluster::measure_costs() {
  if (!plan_->limits().draft_policy || options_.drafter != nullptr) return {};
  caf::anon_send(local_.at(plan_->client().id)->scheduler(), actors::measure_atom::value);
  if (const result<void> waited = await_measured(); !waited) return waited;
  progress(measured_ ? "measured " + session::to_string(*measured_)
                     : "steps take too long to be measured before the first request");
  ++epoch_.value;
  // A unit that computes answers when it is ready.
  start_limit_ = wait_clock::now() + plan_->deadlines().start + plan_->deadlines().step;
  if (const result<void> wired = wire_all(); !wired) return wired;
  if (options_.trace_events_max > 0) static_cast<void>(reports());  // of what was measured
  resume();  // a step that took longer than its deadline was given up
  return {};
}

/// Until it is measured, has failed for good, or has taken too long.
result<void> cluster::await_measured() {
  const auto until = wait_clock::now() + measuring_limit;
  while (!measured_ && wait_clock::now() < until) {
    if (auto ended = ended_child()) return fail(std::move(*ended));
    auto news = events_.pop(child_interval);
    if (!news) continue;
    if (std::holds_alternative<failed_event>(*news)) return {};
    if (const result<void> noted = note(*news); !noted) return noted;
  }
  return {};
}

}  // namespace cedar::topology
