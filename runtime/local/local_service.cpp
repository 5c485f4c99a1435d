#include "runtime/local/local_service.hpp"

#include <utility>

namespace cedar::local {

local_service::local_service(local_engine& engine, std::uint32_t queue_max)
    : engine_(engine),
      limits_(engine.scheduler_limits(queue_max)),
      scheduler_(limits_, engine.policy()),
      thread_([this] { run(); }) {}

local_service::~local_service() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  arrived_.notify_one();
  thread_.join();
}

session::service_limits local_service::limits() const {
  return session::service_limits_of(limits_);
}

request_id local_service::submit(session::generation_request request,
                                 session::request_events events) {
  const std::scoped_lock lock(mutex_);
  const request_id ticket{next_ticket_++};
  submitted_.push_back({ticket, std::move(request), std::move(events)});
  arrived_.notify_one();
  return ticket;
}

void local_service::cancel(request_id request) {
  const std::scoped_lock lock(mutex_);
  cancelled_.push_back(request);
  arrived_.notify_one();
}

session::service_status local_service::status() const {
  const std::scoped_lock lock(mutex_);
  session::service_status out{{{"engine", "local", !failure_, caches_}},
                              failure_ ? failure_->message : "",
                              load_,
                              recoveries_};
  out.kv_positions_max = limits_.kv_positions();
  return out;
}

void local_service::interrupt() {
  const std::scoped_lock lock(mutex_);
  interrupt_ = true;
  arrived_.notify_one();
}

void local_service::start(submission order) {
  if (failure_) return order.events.on_failed(*failure_);
  const auto ids = scheduler_.submit({std::move(order.request)});
  if (!ids) return order.events.on_failed(ids.error());
  requests_.add(order.ticket, ids->front(), std::move(order.events));
}

bool local_service::take_orders() {
  std::vector<submission> submitted;
  std::vector<request_id> cancelled;
  bool interrupted = false;
  {
    std::unique_lock lock(mutex_);
    load_ = scheduler_.load();
    caches_ = engine_.caches();
    if (scheduler_.requests() == 0)
      arrived_.wait(
          lock, [&] { return stop_ || interrupt_ || !submitted_.empty() || !cancelled_.empty(); });
    submitted.swap(submitted_);
    cancelled.swap(cancelled_);
    interrupted = std::exchange(interrupt_, false);
    if (stop_) {
      lock.unlock();
      const error ended{errc::cancelled, "the server is stopping"};
      for (const submission& order : submitted) order.events.on_failed(ended);
      requests_.fail_all(ended);
      return false;
    }
  }
  if (interrupted) fail_all({errc::cancelled, "interrupted"});
  for (submission& order : submitted) start(std::move(order));
  for (const request_id ticket : cancelled)
    if (const auto running = requests_.cancel(ticket)) scheduler_.cancel(*running);
  return true;
}

result<void> local_service::run_step(const flow::step_table& table) {
  if (const auto added = engine_.add_images(scheduler_.beginning_images()); !added) return added;
  const result<flow::proposal> proposal = engine_.run(table, {});
  if (!proposal) return fail(proposal.error());
  const result<session::step_outcome> outcome = scheduler_.accept(*proposal);
  if (!outcome) return fail(outcome.error());
  // First of all: for the scheduler they are over, whatever becomes of the engine.
  for (const session::row_event& event : outcome->events) {
    requests_.row(event);
    if (event.finish != session::finish_reason::none)
      requests_.finished(event.request, *scheduler_.usage_of(event.request));
  }
  engine_.apply(outcome->verdict);
  return engine_.offer_drafts(scheduler_, table, *outcome);
}

result<void> local_service::run_guarded(const flow::step_table& table) {
  try {
    return run_step(table);
  } catch (const std::exception& thrown) {
    return fail(errc::defect, thrown.what());
  }
}

/// For good: those to come fail, too.
void local_service::fail_all(const error& why) {
  {
    const std::scoped_lock lock(mutex_);
    failure_ = why;
  }
  scheduler_.fail_all();
  requests_.fail_all(why);
}

void local_service::recover(const error& why) {
  for (const request_id request : scheduler_.fail_active()) requests_.failed(request, why);
  if (const result<void> renewed = engine_.renew(); !renewed)
    return fail_all(renewed.error().with(why.message));
  {
    const std::scoped_lock lock(mutex_);
    ++recoveries_;
  }
  scheduler_.begin_epoch(epoch_id{scheduler_.epoch().value + 1});
}

void local_service::run() {
  while (take_orders()) {
    const auto table = scheduler_.next_step();
    if (!table) continue;
    if (const result<void> ran = run_guarded(*table); !ran) recover(ran.error().with("engine"));
  }
}

}  // namespace cedar::local
