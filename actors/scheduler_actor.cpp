#include "actors/scheduler_actor.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "actors/edge_set.hpp"
#include "actors/error_bridge.hpp"
#include "kernels/base/check.hpp"

namespace cedar::actors {

using namespace std::chrono_literals;

namespace {

/// What the pipeline owes the scheduler.
struct awaited {
  std::string where;
  std::string what;
  caf::actor_clock::time_point since;
};

/// A step whose proposal is awaited.
struct started_step {
  caf::actor_clock::time_point since;
  bool drafter_hears = false;  ///< it has the table, and gets the verdict
};

/// Orders that the drafter has not answered.
struct open_orders {
  std::vector<flow::draft_order> orders;
  caf::actor_clock::time_point since;
};

double seconds(caf::actor_clock::duration_type time) {
  return std::chrono::duration<double>(time).count();
}

struct scheduler_state {
  std::optional<session::draft_policy> policy;
  std::optional<session::step_scheduler> core;
  std::optional<session::cost_measurement> measurement;  ///< runs instead of the core's requests
  session::drafter* drafter = nullptr;
  scheduler_listener listener;
  std::unique_ptr<edge_set> edges;
  std::optional<fault> failure;
  std::map<step_id, started_step> started;  ///< steps in flight
  /// Since when a verdict or an order waits for credit; no step starts meanwhile, so no step's
  /// deadline runs.
  std::optional<caf::actor_clock::time_point> verdict_waits;
  std::map<step_id, std::size_t> taps_open;  ///< edges that have not ended their taps of a step
  std::deque<flow::proposal> proposals;  ///< in order; the first one's taps are not all here
  std::map<step_id, open_orders> drafts_open;
  std::map<step_id, flow::step_table> tables;  ///< of the steps in flight, for `drafter`
  session::scheduler_load load;  ///< as the listener knows it
  bool timed = false;  ///< a deadline message is on its way: at most one is

  /// An edge with a verdict or an order that waits for credit; null: there is none.
  const std::string* waiting_edge() const {
    const std::string* edge = edges->waiting_edge("verdict");
    return edge != nullptr ? edge : edges->waiting_edge("draft_orders");
  }

  /// The next step of a measurement, or of the requests; false: there is none.
  bool start_step(caf::actor_clock::time_point now) {
    // While one waits for credit no other image begins; steps without go on.
    const auto table = measurement ? measurement->next_step()
                                   : core->next_step(edges->waiting_edge("image") == nullptr);
    if (!table) return false;
    const bool drafter_hears = measurement || core->drafter_hears();
    started[table->step] = {now, drafter_hears};
    if (!measurement)
      for (const flow::request_image& image : core->beginning_images())
        edges->send(flow::step_image{table->step, table->epoch, image});
    if (!table->taps.empty()) taps_open.emplace(table->step, edges->inbound_count("tap"));
    if (drafter != nullptr) tables.emplace(table->step, *table);
    edges->send(*table, drafter_hears);
    return true;
  }

  /// Hands out steps while there are rows, room and credit.
  void pump(caf::actor_clock::time_point now) {
    while (!failure && waiting_edge() == nullptr && start_step(now)) {
    }
    if (failure || waiting_edge() == nullptr)
      verdict_waits.reset();
    else if (!verdict_waits)
      verdict_waits = now;
  }

  void tell_load() {
    if (listener.on_load && load != core->load()) listener.on_load(load = core->load());
  }

  /// What has been awaited longest: the oldest step's proposal, the oldest orders' answer, or
  /// credit.
  std::optional<awaited> oldest_wait() {
    std::optional<awaited> out;
    if (measurement && !started.empty()) {
      const auto& [step, begun] = *started.begin();
      out = {"step " + std::to_string(step.value), "no proposal", begun.since};
    } else if (const auto oldest = core->oldest_step()) {
      started.erase(started.begin(), started.find(*oldest));
      out = {"step " + std::to_string(oldest->value), "no proposal", started.at(*oldest).since};
    }
    if (verdict_waits && (!out || *verdict_waits < out->since))
      out = {"edge '" + *waiting_edge() + "'", "no credit", *verdict_waits};
    if (!drafts_open.empty() && (!out || drafts_open.begin()->second.since < out->since))
      out = {"drafter", "no draft", drafts_open.begin()->second.since};
    return out;
  }

  result<void> take(flow::message message, caf::actor_clock::time_point now) {
    if (auto* tap = std::get_if<flow::tap>(&message)) {
      if (const result<void> taken = take_tap(std::move(*tap)); !taken) return taken;
    } else if (auto* proposal = std::get_if<flow::proposal>(&message)) {
      proposals.push_back(std::move(*proposal));
    } else if (const auto* answers = std::get_if<flow::draft_answers>(&message)) {
      if (const result<void> taken = take_drafts(*answers, now); !taken) return taken;
    } else {
      return fail(errc::malformed,
                  "the scheduler got a message it does not take: " + std::string(kind_of(message)));
    }
    while (!proposals.empty() && !taps_open.contains(proposals.front().step)) {
      const flow::proposal next = std::move(proposals.front());
      proposals.pop_front();
      if (const result<void> accepted = accept(next, now); !accepted) return accepted;
    }
    return {};
  }

  result<void> take_tap(flow::tap tap) {
    const auto open = taps_open.find(tap.step);
    if (open == taps_open.end())
      return fail(errc::malformed, "the scheduler got a tap of step " +
                                       std::to_string(tap.step.value) + ", which expects none");
    if (!tap.last)
      listener.on_tap(std::move(tap));
    else if (--open->second == 0)
      taps_open.erase(open);
    return {};
  }

  /// One for each order, in their order: a request without an answer would wait for ever.
  result<void> take_drafts(const flow::draft_answers& answers, caf::actor_clock::time_point now) {
    const auto open = drafts_open.find(answers.step);
    const auto answers_it = [](const flow::draft_order& order, const flow::draft& draft) {
      return order.request == draft.request && order.position == draft.position &&
             draft.tokens.size() <= order.tokens_max;
    };
    if (open == drafts_open.end() ||
        !std::ranges::equal(open->second.orders, answers.drafts, answers_it))
      return fail(errc::mismatch, "the drafts after step " + std::to_string(answers.step.value) +
                                      " do not answer its orders");
    const double took = seconds(now - open->second.since);
    drafts_open.erase(open);
    if (measurement) {
      measurement->drafts_took(took);
      return {};
    }
    if (policy) policy->drafts_took(static_cast<std::uint32_t>(answers.drafts.size()), took);
    return offer(answers.drafts);
  }

  result<void> offer(const std::vector<flow::draft>& drafts) {
    for (const flow::draft& draft : drafts)
      if (const result<void> taken = core->offer(draft); !taken) return taken;
    return {};
  }

  result<void> order_drafts(const session::step_outcome& outcome,
                            caf::actor_clock::time_point now) {
    const step_id step = outcome.verdict.step;
    if (drafter != nullptr) {
      const auto drafts = drafter->draft_after(tables.extract(step).mapped(), outcome);
      if (!drafts) return fail(drafts.error());
      return offer(*drafts);
    }
    send_orders(outcome, now);
    return {};
  }

  void send_orders(const session::step_outcome& outcome, caf::actor_clock::time_point now) {
    if (outcome.orders.empty()) return;
    drafts_open[outcome.verdict.step] = {outcome.orders, now};
    edges->send(flow::draft_orders{outcome.verdict.step, outcome.verdict.epoch, outcome.orders});
  }

  /// Of a step that is measured.
  result<void> accept_measured(const flow::proposal& proposal, caf::actor_clock::time_point now) {
    const auto outcome = measurement->accept(proposal);
    if (!outcome) return fail(outcome.error());
    measurement->step_took(seconds(now - started.extract(proposal.step).mapped().since));
    edges->send(outcome->verdict, true);
    send_orders(*outcome, now);
    if (measurement->done() && listener.on_measured) listener.on_measured(measurement->measured());
    return {};
  }

  result<void> accept(const flow::proposal& proposal, caf::actor_clock::time_point now) {
    if (measurement) return accept_measured(proposal, now);
    const auto outcome = core->accept(proposal);
    if (!outcome) return fail(outcome.error());
    const started_step step = started.at(proposal.step);
    if (policy) policy->step_took(seconds(now - step.since));
    edges->send(outcome->verdict, step.drafter_hears);
    listener.on_rows(proposal, outcome->events);
    for (const session::row_event& event : outcome->events)
      if (event.finish != session::finish_reason::none)
        listener.on_finished(event.request, *core->usage_of(event.request));
    return order_drafts(*outcome, now);
  }

  result<void> handle(const packet_ref& packet, caf::actor_clock::time_point now) {
    if (failure) return {};
    auto message = edges->receive(packet);
    if (!message) return fail(message.error());
    if (!*message) return {};
    if (const result<void> taken = take(std::move(**message), now); !taken) return taken;
    edges->consumed_now();
    return {};
  }

  void give_up(const fault& what) {
    if (failure) return;
    failure = what;
    measurement.reset();
    started.clear();
    verdict_waits.reset();
    taps_open.clear();
    proposals.clear();
    drafts_open.clear();
    tables.clear();
    listener.on_failed(core->fail_active(), what);
    tell_load();
  }

  /// The actor ends.
  void give_up_for_good(const fault& what) {
    std::vector<request_id> lost = core->fail_all();
    failure = what;
    listener.on_failed(lost, what);
  }

  void begin(const std::vector<edge_end>& ends, epoch_id epoch) {
    if (measurement) {
      measurement.reset();
      started.clear();
      drafts_open.clear();
    }
    edges->bind(ends, epoch);
    core->begin_epoch(epoch);
  }

  void measure(const session::scheduler_limits& limits) {
    CEDAR_REQUIRE(core->requests() == 0, "costs are measured before the first request");
    if (policy && drafter == nullptr && !failure)
      measurement.emplace(limits, core->epoch(), *policy);
    if ((!measurement || measurement->done()) && listener.on_measured) listener.on_measured({});
  }

  result<std::vector<request_id>> submit(const std::vector<session::generation_request>& requests) {
    if (failure) return fail(failure->what.with(failure->where));
    return core->submit(requests);
  }
};

using scheduler_pointer = scheduler_actor::stateful_pointer<scheduler_state>;

/// Asks to be woken when what is awaited longest has had its time.
void watch(scheduler_pointer self, std::chrono::milliseconds deadline) {
  if (self->state.timed) return;
  const auto oldest = self->state.oldest_wait();
  if (!oldest) return;
  self->state.timed = true;
  const auto left = oldest->since + deadline - self->clock().now();
  self->delayed_send(self, std::max(std::chrono::ceil<std::chrono::milliseconds>(left), 0ms),
                     deadline_atom::value);
}

void pump(scheduler_pointer self, std::chrono::milliseconds deadline) {
  self->state.pump(self->clock().now());
  self->state.tell_load();
  watch(self, deadline);
}

/// What was awaited longest when the deadline message left may have come since.
void judge(scheduler_pointer self, std::chrono::milliseconds deadline) {
  self->state.timed = false;
  const auto oldest = self->state.oldest_wait();
  if (!oldest || self->clock().now() < oldest->since + deadline) return watch(self, deadline);
  self->state.give_up(
      {oldest->where,
       {errc::timeout,
        oldest->what + " within " + std::to_string(deadline.count()) + " ms (deadlines_ms.step)"}});
}

scheduler_actor::behavior_type scheduler_behavior(scheduler_pointer self,
                                                  const std::shared_ptr<scheduler_config>& config) {
  if (config->draft_policy)
    self->state.policy.emplace(config->limits.draft_tokens_max, config->limits.rows_per_step);
  self->state.core.emplace(config->limits, self->state.policy ? &*self->state.policy : nullptr);
  self->state.listener = config->listener;
  self->state.drafter = config->drafter;
  self->state.edges = std::make_unique<edge_set>(
      *config->trace,
      [self](const packet_sink& to, packet_ref packet) { self->send(to, std::move(packet)); });
  self->set_exception_handler([self](std::exception_ptr& thrown) -> caf::error {
    self->state.give_up_for_good({"scheduler", defect_of(thrown)});
    return caf::exit_reason::unhandled_exception;
  });
  const std::chrono::milliseconds deadline = config->step_deadline;
  return {
      [self, deadline](const packet_ref& packet) {
        const result<void> handled = self->state.handle(packet, self->clock().now());
        if (!handled) self->state.give_up({"scheduler", handled.error()});
        pump(self, deadline);
      },
      [self](bind_atom, const edge_ends_ref& ends, std::uint32_t epoch) {
        self->state.begin(*ends, epoch_id{epoch});
        return bound_atom::value;
      },
      [self, deadline](submit_atom, const requests_ref& requests) -> caf::result<request_ids_ref> {
        auto ids = self->state.submit(*requests);
        if (!ids) return to_caf(ids.error());
        pump(self, deadline);
        return request_ids_ref(std::make_shared<const std::vector<request_id>>(std::move(*ids)));
      },
      [self, deadline](cancel_atom, std::uint64_t request) {
        self->state.core->cancel(request_id{request});
        pump(self, deadline);
      },
      [self](fail_atom, const fault_ref& what) { self->state.give_up(*what); },
      [self, deadline](resume_atom) {
        self->state.failure.reset();
        pump(self, deadline);
      },
      [self, deadline, limits = config->limits](measure_atom) {
        self->state.measure(limits);
        pump(self, deadline);
      },
      [self, deadline](deadline_atom) { judge(self, deadline); },
  };
}

}  // namespace

scheduler_actor spawn_scheduler(caf::actor_system& system, scheduler_config config) {
  // SHARED: with the actor's constructor.
  return system.spawn(scheduler_behavior, std::make_shared<scheduler_config>(std::move(config)));
}

}  // namespace cedar::actors
