// Where the time of decode steps goes in a pipeline, from the trace of a run.
//
// A decode step lasts from one proposal's departure to the next one's. On its way it visits the
// units in the plan's order, one after the other: scheduler, embedding, stages, head. What it does
// not spend computing it spends between units; an edge of that way that leads into another process
// is a hop. Valid for one request at a time on one host (one clock).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/trace.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::tools {

/// All of one edge's messages, of prompts and decode steps.
struct edge_times {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::int64_t credit_wait_us = 0;
  bool crosses = false;
  /// Decode steps, edges of the way only: from departure to the beginning of the consumer's work.
  std::vector<double> delivery_us;
};

struct unit_times {
  std::vector<double> compute_us;  ///< a decode step each
};

struct pipeline_times {
  std::vector<double> step_us;  ///< a decode step each
  std::vector<double> compute_us;  ///< the same steps: all units together
  std::vector<double> between_us;  ///< the same steps: the difference
  std::map<std::string, edge_times> edges;
  std::map<std::string, unit_times> units;
  /// Edges of the way that lead into another process; what a step crosses.
  std::vector<std::string> hops;
};

/// Adds a run to `times`. `prompt_steps`: steps of the run that belong to the prompt; they come
/// first. Steps of which something is missing (a full trace) are left out.
void add_run(pipeline_times& times, const topology::plan& plan,
             const std::vector<trace_process>& trace, std::size_t prompt_steps);

}  // namespace cedar::tools
