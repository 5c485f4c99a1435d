#include "actors/unit_actor.hpp"

#include "actors/edge_set.hpp"
#include "actors/error_bridge.hpp"

namespace cedar::actors {

namespace {

struct unit_state {
  std::string name;
  std::unique_ptr<stage::unit> unit;
  fault_sink supervisor;
  trace_recorder* trace = nullptr;
  std::unique_ptr<edge_set> edges;
  epoch_id epoch;
  bool failed = false;  ///< what comes after an error is not looked at, until the next epoch

  void begin(const std::vector<edge_end>& ends, epoch_id next) {
    edges->bind(ends, next);
    unit->begin_epoch();
    trace->hold(name, unit->caches());
    epoch = next;
    failed = false;
  }

  void record(const stage::unit_work& work) const {
    if (!trace->on()) return;
    const std::int64_t arrived = trace_us(work.first_arrival);
    const std::int64_t begin = trace_us(work.begin);
    trace->add({trace_kind::wait, name, work.step.value, arrived, begin - arrived, 0, work.rows,
                work.decoder_rows});
    trace->add({trace_kind::compute, name, work.step.value, begin, trace_us(work.end) - begin, 0,
                work.rows, work.decoder_rows});
  }

  result<void> handle(const packet_ref& packet) {
    if (failed) return {};
    auto message = edges->receive(packet);
    if (!message) return fail(message.error());
    if (!*message) return {};
    const bool of_step = unit->is_input_of_step(**message);
    auto output = unit->take(std::move(**message));
    trace->hold(name, unit->caches());
    if (!output) return fail(output.error());
    // Before what it led to leaves: the credit for an answer must be back before the next request.
    if (!of_step) edges->consumed_now();
    deliver(*output);
    while (output->more) {
      output = unit->go_on();
      if (!output) return fail(output.error());
      deliver(*output);
    }
    return {};
  }

  void deliver(const stage::unit_output& output) const {
    // Recorded before anybody hears of the step: a trace taken after its proposal is complete.
    for (const stage::unit_work& work : output.work) {
      record(work);
      trace->count(name, work.engram);
    }
    for (const flow::message& out : output.messages) edges->send(out);
    for (const stage::unit_work& work : output.work)
      if (work.done) edges->consumed_step(work.step);
  }
};

unit_actor::behavior_type unit_behavior(unit_actor::stateful_pointer<unit_state> self,
                                        const std::shared_ptr<unit_config>& config) {
  unit_state& state = self->state;
  state.name = config->name;
  state.unit = std::move(config->unit);
  state.supervisor = config->supervisor;
  state.trace = config->trace;
  state.edges = std::make_unique<edge_set>(
      *config->trace,
      [self](const packet_sink& to, packet_ref packet) { self->send(to, std::move(packet)); });
  const auto report = [self](const error& what) {
    self->state.failed = true;
    self->send(self->state.supervisor,
               std::make_shared<const fault>(fault{self->state.name, what, self->state.epoch}));
  };
  // A defect ends the unit; whoever supervises hears its text.
  self->set_exception_handler([report](std::exception_ptr& thrown) -> caf::error {
    report(defect_of(thrown));
    return caf::exit_reason::unhandled_exception;
  });
  return {
      [self, report](const packet_ref& packet) {
        if (const result<void> handled = self->state.handle(packet); !handled)
          report(handled.error());
      },
      [self](bind_atom, const edge_ends_ref& ends, std::uint32_t epoch) {
        self->state.begin(*ends, epoch_id{epoch});
        return bound_atom::value;
      },
  };
}

}  // namespace

unit_actor spawn_unit(caf::actor_system& system, unit_config config) {
  const bool detached = config.computes;
  // SHARED: with the actor's constructor, which empties it.
  const auto shared = std::make_shared<unit_config>(std::move(config));
  return detached ? system.spawn<caf::detached>(unit_behavior, shared)
                  : system.spawn(unit_behavior, shared);
}

}  // namespace cedar::actors
