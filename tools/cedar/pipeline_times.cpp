#include "tools/cedar/pipeline_times.hpp"

#include <algorithm>
#include <optional>

namespace cedar::tools {

namespace {

using topology::edge_kind;
using topology::edge_plan;
using topology::plan;

/// What a unit computed of a step: several stretches if it waited for entries of an owner.
struct unit_stretches {
  std::int64_t begin_us = 0;  ///< of the first
  std::int64_t compute_us = 0;  ///< of all
};

/// Events of one step.
struct step_events {
  std::map<std::string, unit_stretches> compute;  ///< by unit
  std::map<std::string, std::int64_t> left;  ///< by edge
};

/// The edges that a step walks, in order; the last one ends at the scheduler.
std::vector<const edge_plan*> way_of(const plan& plan) {
  std::vector<const edge_plan*> out;
  for (const edge_plan& edge : plan.edges()) {
    const bool first = edge.kind == edge_kind::step_table &&
                       std::holds_alternative<topology::embedding_role>(plan[edge.consumer].role);
    if (first || edge.kind == edge_kind::embedded || edge.kind == edge_kind::activation ||
        edge.kind == edge_kind::head_input || edge.kind == edge_kind::proposal)
      out.push_back(&edge);
  }
  return out;
}

std::optional<std::int64_t> left_on(const step_events& step, const std::string& edge) {
  const auto found = step.left.find(edge);
  return found == step.left.end() ? std::nullopt : std::optional(found->second);
}

/// When the consumer of `edge` began to work on what `step` sent; `next` is the step after it.
std::optional<std::int64_t> taken_up(const plan& plan, const edge_plan& edge,
                                     const step_events& step, const step_events* next,
                                     const std::string& table_edge) {
  if (edge.kind == edge_kind::proposal)
    return next == nullptr ? std::nullopt : left_on(*next, table_edge);
  const auto found = step.compute.find(plan[edge.consumer].name);
  return found == step.compute.end() ? std::nullopt : std::optional(found->second.begin_us);
}

class run_reader {
 public:
  run_reader(const plan& plan, const std::vector<trace_process>& trace)
      : plan_(plan), way_(way_of(plan)) {
    for (const trace_process& process : trace)
      for (const trace_event& event : process.events) {
        step_events& step = steps_[event.step];
        if (event.kind == trace_kind::message)
          step.left.emplace(event.track, event.begin_us + event.duration_us);
        else if (event.kind == trace_kind::compute)
          step.compute.try_emplace(event.track, unit_stretches{event.begin_us, 0})
              .first->second.compute_us += event.duration_us;
      }
  }

  void add_decode_steps(pipeline_times& times, std::size_t prompt_steps) const {
    const std::string& table = way_.front()->name;
    std::size_t index = 0;
    for (auto step = steps_.begin(); step != steps_.end(); ++step, ++index) {
      if (index < std::max<std::size_t>(prompt_steps, 1)) continue;
      add_step(times, std::prev(step)->second, step->second);
      const auto next = std::next(step);
      for (const edge_plan* edge : way_) {
        const auto left = left_on(step->second, edge->name);
        const auto taken = taken_up(plan_, *edge, step->second,
                                    next == steps_.end() ? nullptr : &next->second, table);
        if (left && taken)
          times.edges[edge->name].delivery_us.push_back(static_cast<double>(*taken - *left));
      }
    }
  }

 private:
  void add_step(pipeline_times& times, const step_events& before, const step_events& step) const {
    const std::string& answer = way_.back()->name;
    const auto begin = left_on(before, answer);
    const auto end = left_on(step, answer);
    // The scheduler computes nothing that is recorded.
    if (!begin || !end || step.compute.size() + 1 != plan_.units().size()) return;
    double compute = 0;
    for (const auto& [unit, stretches] : step.compute) {
      times.units[unit].compute_us.push_back(static_cast<double>(stretches.compute_us));
      compute += static_cast<double>(stretches.compute_us);
    }
    const auto whole = static_cast<double>(*end - *begin);
    times.step_us.push_back(whole);
    times.compute_us.push_back(compute);
    times.between_us.push_back(whole - compute);
  }

  const plan& plan_;
  std::vector<const edge_plan*> way_;
  std::map<std::uint64_t, step_events> steps_;
};

}  // namespace

void add_run(pipeline_times& times, const plan& plan, const std::vector<trace_process>& trace,
             std::size_t prompt_steps) {
  for (const trace_process& process : trace)
    for (const trace_event& event : process.events) {
      if (event.kind != trace_kind::message) continue;
      edge_times& edge = times.edges[event.track];
      ++edge.messages;
      edge.bytes += event.bytes;
      edge.credit_wait_us += event.duration_us;
    }
  times.hops.clear();
  for (const edge_plan* edge : way_of(plan))
    if (edge->crosses()) times.hops.push_back(edge->name);
  for (const edge_plan& edge : plan.edges()) times.edges[edge.name].crosses = edge.crosses();
  run_reader(plan, trace).add_decode_steps(times, prompt_steps);
}

}  // namespace cedar::tools
