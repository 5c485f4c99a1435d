#include "actors/scheduler_actor.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "actors/edge_set.hpp"
#include "actors/error_bridge.hpp"

namespace cedar::actors {

using namespace std::chrono_literals;

namespace {

struct scheduler_state {
  std::optional<session::step_scheduler> core;
  scheduler_listener listener;
  std::unique_ptr<edge_set> edges;
  std::optional<fault> failure;
  std::map<step_id, caf::actor_clock::time_point> started;  ///< steps in flight
  bool timed = false;  ///< a deadline message is on its way: at most one is

  /// Hands out steps while there are rows, room and credit.
  void pump(caf::actor_clock::time_point now) {
    while (!failure && edges->flushed("verdict")) {
      const auto table = core->next_step();
      if (!table) break;
      started.emplace(table->step, now);
      edges->send(*table);
    }
  }

  /// When the oldest step in flight began, if there is one.
  std::optional<caf::actor_clock::time_point> oldest_start() {
    const auto oldest = core->oldest_step();
    if (!oldest) return std::nullopt;
    started.erase(started.begin(), started.find(*oldest));
    return started.at(*oldest);
  }

  result<void> take(flow::message message) {
    if (auto* tap = std::get_if<flow::tap>(&message)) {
      listener.on_tap(std::move(*tap));
      return {};
    }
    const auto* proposal = std::get_if<flow::proposal>(&message);
    if (proposal == nullptr)
      return fail(errc::malformed,
                  "the scheduler got a message it does not take: " + std::string(kind_of(message)));
    const auto outcome = core->accept(*proposal);
    if (!outcome) return fail(outcome.error());
    edges->send(outcome->verdict);
    listener.on_rows(*proposal, outcome->events);
    for (const session::row_event& event : outcome->events)
      if (event.finish != session::finish_reason::none)
        listener.on_finished(event.request, *core->usage_of(event.request));
    return {};
  }

  result<void> handle(const packet_ref& packet) {
    if (failure) return {};
    auto message = edges->receive(packet);
    if (!message) return fail(message.error());
    if (!*message) return {};
    if (const result<void> taken = take(std::move(**message)); !taken) return taken;
    edges->consumed_now();
    return {};
  }

  void give_up(const fault& what) {
    if (failure) return;
    failure = what;
    listener.on_failed(core->fail_all(), what);
  }

  result<std::vector<request_id>> submit(const std::vector<session::generation_request>& requests) {
    if (failure) return fail(failure->what.with(failure->where));
    return core->submit(requests);
  }
};

using scheduler_pointer = scheduler_actor::stateful_pointer<scheduler_state>;

/// Asks to be woken when the oldest step has had its time.
void watch(scheduler_pointer self, std::chrono::milliseconds deadline) {
  const auto start = self->state.oldest_start();
  if (!start || self->state.timed) return;
  self->state.timed = true;
  const auto left = *start + deadline - self->clock().now();
  self->delayed_send(self, std::max(std::chrono::ceil<std::chrono::milliseconds>(left), 0ms),
                     deadline_atom::value, self->state.core->oldest_step()->value);
}

void pump(scheduler_pointer self, std::chrono::milliseconds deadline) {
  self->state.pump(self->clock().now());
  watch(self, deadline);
}

/// `step` was the oldest when the deadline message left: it is late if it still is.
void judge(scheduler_pointer self, std::chrono::milliseconds deadline, step_id step) {
  self->state.timed = false;
  if (self->state.core->oldest_step() != step) return watch(self, deadline);
  self->state.give_up(
      {"step " + std::to_string(step.value),
       {errc::timeout, "no proposal within " + std::to_string(deadline.count()) + " ms"}});
}

scheduler_actor::behavior_type scheduler_behavior(scheduler_pointer self,
                                                  const std::shared_ptr<scheduler_config>& config) {
  self->state.core.emplace(config->limits);
  self->state.listener = config->listener;
  self->state.edges = std::make_unique<edge_set>(
      *config->trace,
      [self](const packet_sink& to, packet_ref packet) { self->send(to, std::move(packet)); });
  self->set_exception_handler([self](std::exception_ptr& thrown) -> caf::error {
    self->state.give_up({"scheduler", defect_of(thrown)});
    return caf::exit_reason::unhandled_exception;
  });
  const std::chrono::milliseconds deadline = config->step_deadline;
  return {
      [self, deadline](const packet_ref& packet) {
        const result<void> handled = self->state.handle(packet);
        if (!handled) self->state.give_up({"scheduler", handled.error()});
        pump(self, deadline);
      },
      [self](bind_atom, const edge_ends_ref& ends) {
        self->state.edges->bind(*ends);
        return bound_atom::value;
      },
      [self, deadline](submit_atom, const requests_ref& requests) -> caf::result<request_ids_ref> {
        auto ids = self->state.submit(*requests);
        if (!ids) return to_caf(ids.error());
        pump(self, deadline);
        return request_ids_ref(std::make_shared<const std::vector<request_id>>(std::move(*ids)));
      },
      [self](fail_atom, const fault_ref& what) { self->state.give_up(*what); },
      [self, deadline](deadline_atom, std::uint64_t step) { judge(self, deadline, step_id{step}); },
  };
}

}  // namespace

scheduler_actor spawn_scheduler(caf::actor_system& system, scheduler_config config) {
  // SHARED: with the actor's constructor.
  return system.spawn(scheduler_behavior, std::make_shared<scheduler_config>(std::move(config)));
}

}  // namespace cedar::actors
