// The scheduler under CAF: requests in, steps out, proposals in, verdicts out.
//
// All decisions are session::step_scheduler's. The actor adds delivery, credit, and a deadline on
// everything that it waits for. A verdict, and what is ordered of the drafter after it, leave
// before the next step table, and no table leaves while one of them waits for credit: so a stage
// never meets a new request before it has freed a finished one, and the drafter is never far
// behind. Images leave before the table of the step in which they begin; while one waits for credit
// no other begins, and requests without images go on.
//
// Told to measure, before any request, it runs the steps of a session::cost_measurement instead;
// the epoch that is bound next ends that, done or not.
//
// A failure ends the epoch: the requests that the pipeline held state of are given up, those that
// wait in the queue wait on, new ones are refused. Binding the edges again begins the next epoch;
// resume says that all other units have done so too. A defect of the scheduler itself gives up all.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"
#include "runtime/base/trace.hpp"
#include "runtime/session/cost_measurement.hpp"
#include "runtime/session/drafter.hpp"
#include "runtime/session/step_scheduler.hpp"

namespace cedar::actors {

/// Where the scheduler's results go. Called in the actor's context: must not block.
struct scheduler_listener {
  /// Rows of one step. `proposal` keeps the events' logits alive.
  std::function<void(const flow::proposal& proposal, const std::vector<session::row_event>& events)>
      on_rows;
  /// A request has ended well.
  std::function<void(request_id, const session::usage&)> on_finished;
  std::function<void(flow::tap)> on_tap;
  /// What there is to do has changed. May be empty.
  std::function<void(const session::scheduler_load&)> on_load;
  /// The pipeline cannot go on until it is resumed: the requests that were given up, and why. Once
  /// for each failure.
  std::function<void(const std::vector<request_id>&, const fault&)> on_failed;
  /// The measurement is done, or nobody would use what it finds. May be empty.
  std::function<void(const session::measured_costs&)> on_measured{};
};

struct scheduler_config {
  session::scheduler_limits limits;
  /// From a step's table to its proposal; from a verdict to its credit; from an order of drafts to
  /// its answer.
  std::chrono::milliseconds step_deadline{0};
  scheduler_listener listener;
  trace_recorder* trace = nullptr;  ///< outlives the actor
  /// Drafts instead of a unit of the pipeline; called in the actor's context. Outlives the actor.
  session::drafter* drafter = nullptr;
  bool draft_policy = false;  ///< drafts as far as it pays (session::draft_policy), not always
};

scheduler_actor spawn_scheduler(caf::actor_system& system, scheduler_config config);

}  // namespace cedar::actors
