// The drafter as a unit. It hears of steps with requests that it follows, and of those alone. Taps,
// verdicts and orders take different ways and may overtake each other: a step's verdict waits for
// its taps, its orders wait for its verdict, and both go before the next step, so that a request
// never begins before the one is freed whose place it takes.
#include <algorithm>
#include <deque>

#include "runtime/stage/drafting.hpp"
#include "runtime/stage/step_join.hpp"
#include "runtime/stage/unit_parts.hpp"

namespace cedar::stage {

namespace {

using clock = std::chrono::steady_clock;

constexpr const char* name = "the drafter";

join_inputs inputs_of(const drafting& body) {
  join_inputs inputs;
  for (const std::uint32_t layer : body.target_layers())
    inputs.shared.push_back({flow::row_kind::draft_taps, layer});
  inputs.has_shared = [&body](const flow::step_table& table) { return body.takes_taps(table); };
  return inputs;
}

/// A message that waits for what goes before it.
template <class Message>
struct held_message {
  Message message;
  unit_time arrived;
};

class drafter_unit final : public unit {
 public:
  drafter_unit(std::unique_ptr<drafting> body, std::size_t steps_max)
      : join_(inputs_of(*body), steps_max), steps_max_(steps_max), body_(std::move(body)) {}

  result<unit_output> take(flow::message message) override {
    if (const result<void> kept = keep(std::move(message)); !kept) return fail(kept.error());
    unit_output out;
    while (true) {
      const result<bool> went_on = go_on(out);
      if (!went_on) return fail(went_on.error());
      if (!*went_on) return out;
    }
  }

  /// Also verdicts and orders: they may have to wait.
  bool is_input_of_step(const flow::message& /*message*/) const override { return true; }

  void begin_epoch() override {
    join_.clear();
    verdicts_.clear();
    orders_.clear();
    body_->clear();
    known_ = settled_ = {};
  }
  cache_bytes caches() const override { return body_->caches(); }

 private:
  result<void> keep(flow::message message) {
    const unit_time now = clock::now();
    if (auto* table = std::get_if<flow::step_table>(&message))
      return join_.add(std::move(*table), now);
    if (auto* block = std::get_if<flow::row_block>(&message))
      return join_.add(std::move(*block), now);
    if (auto* verdict = std::get_if<flow::verdict>(&message))
      return keep(verdicts_, {std::move(*verdict), now}, settled_);
    if (auto* orders = std::get_if<flow::draft_orders>(&message))
      return keep(orders_, {std::move(*orders), now}, {});
    return fail(unexpected(name, message));
  }

  /// In the order of steps, each once, after `last`.
  template <class Message>
  result<void> keep(std::deque<held_message<Message>>& held, held_message<Message> one,
                    step_id last) const {
    const step_id step = one.message.step;
    const step_id before = held.empty() ? last : held.back().message.step;
    if (step <= before || held.size() == steps_max_)
      return fail(errc::malformed, std::string(name) + " got the " +
                                       std::string(kind_of(flow::message(one.message))) +
                                       " of step " + std::to_string(step.value) +
                                       " after that of step " + std::to_string(before.value) +
                                       ", " + std::to_string(held.size()) + " wait");
    held.push_back(std::move(one));
    return {};
  }

  /// One piece of work; false: what is next has not come.
  result<bool> go_on(unit_output& out) {
    if (!verdicts_.empty() && verdicts_.front().message.step <= known_) return settle(out);
    if (!orders_.empty() && orders_.front().message.step <= settled_) return draft(out);
    auto step = join_.pop();
    if (!step) return false;
    unit_work work = work_of(step->table, step->first_arrival);
    if (const auto done = body_->extend(step->table, step->shared); !done)
      return fail(done.error());
    known_ = step->table.step;
    work.end = clock::now();
    work.done = false;  // its inputs are used up with its verdict
    out.work.push_back(work);
    return true;
  }

  result<bool> settle(unit_output& out) {
    const held_message<flow::verdict> next = std::move(verdicts_.front());
    verdicts_.pop_front();
    unit_work work = begin(next.message.step, next.arrived, next.message.commitments.size());
    if (const auto done = body_->apply(next.message); !done) return fail(done.error());
    settled_ = next.message.step;
    work.end = clock::now();
    out.work.push_back(work);
    return true;
  }

  result<bool> draft(unit_output& out) {
    const held_message<flow::draft_orders> next = std::move(orders_.front());
    orders_.pop_front();
    unit_work work = begin(next.message.step, next.arrived, next.message.orders.size());
    auto drafts = body_->run(next.message.orders);
    if (!drafts) return fail(drafts.error());
    out.messages.emplace_back(
        flow::draft_answers{next.message.step, next.message.epoch, std::move(*drafts)});
    work.end = clock::now();
    out.work.push_back(work);
    return true;
  }

  static unit_work begin(step_id step, unit_time arrived, std::size_t requests) {
    unit_work work;
    work.step = step;
    work.rows = static_cast<std::uint32_t>(requests);
    work.first_arrival = arrived;
    work.begin = clock::now();
    return work;
  }

  step_join join_;
  std::size_t steps_max_;
  std::unique_ptr<drafting> body_;
  std::deque<held_message<flow::verdict>> verdicts_;
  std::deque<held_message<flow::draft_orders>> orders_;
  step_id known_;  ///< the last whose taps are in the windows
  step_id settled_;  ///< the last whose verdict has been applied
};

}  // namespace

std::unique_ptr<unit> make_drafter_unit(std::unique_ptr<drafting> body, std::size_t steps_max) {
  return std::make_unique<drafter_unit>(std::move(body), steps_max);
}

}  // namespace cedar::stage
