// A shard of an index as a unit. Tables, keys, queries and verdicts take different ways and may
// overtake each other: a step's queries and its verdict wait for its keys, and the verdict goes
// before the next step, so that its keys continue where those that stand end.
#include <algorithm>
#include <deque>

#include "runtime/stage/step_join.hpp"
#include "runtime/stage/unit_parts.hpp"

namespace cedar::stage {

namespace {

using shard_clock = std::chrono::steady_clock;

join_inputs inputs_of_shard(const indexer_stage& stage) {
  join_inputs inputs;
  inputs.shared.push_back({flow::row_kind::index_keys, stage.shard().owner, stage.shard().number});
  inputs.has_shared = [&stage](const flow::step_table& table) { return stage.takes_keys(table); };
  return inputs;
}

class indexer_unit final : public unit {
 public:
  indexer_unit(std::unique_ptr<indexer_stage> stage, std::size_t steps_max)
      : join_(inputs_of_shard(*stage), steps_max),
        steps_max_(steps_max),
        stage_(std::move(stage)) {}

  result<unit_output> take(flow::message message) override {
    if (const result<void> kept = keep(std::move(message)); !kept) return fail(kept.error());
    unit_output out;
    while (true) {
      const result<bool> went_on = go_on_with(out);
      if (!went_on) return fail(went_on.error());
      if (!*went_on) return out;
    }
  }

  /// Also verdicts, which are used up with their step if they come before it, else when they come.
  bool is_input_of_step(const flow::message& message) const override {
    const auto* block = std::get_if<flow::row_block>(&message);
    return block == nullptr || !is_request(block->kind);
  }

  void begin_epoch() override {
    join_.clear();
    verdicts_.clear();
    queries_.clear();
    stage_->clear();
    known_ = settled_ = {};
  }
  cache_bytes caches() const override { return stage_->caches(); }

 private:
  static constexpr const char* name = "an indexer";

  struct held_verdict {
    flow::verdict message;
    unit_time arrived;
  };

  result<void> keep(flow::message message) {
    const unit_time now = shard_clock::now();
    if (auto* table = std::get_if<flow::step_table>(&message))
      return table->step > known_ ? join_.add(std::move(*table), now) : late(table->step);
    if (auto* verdict = std::get_if<flow::verdict>(&message)) return keep(std::move(*verdict), now);
    auto* block = std::get_if<flow::row_block>(&message);
    if (block == nullptr) return fail(unexpected(name, message));
    if (!is_request(block->kind))
      return block->step > known_ ? join_.add(std::move(*block), now) : late(block->step);
    if (std::ranges::count(queries_, block->reader, &flow::row_block::reader) > 0)
      return fail(errc::malformed, std::string(name) + " got a second query of step " +
                                       std::to_string(block->step.value) +
                                       " from the stage of layer " + std::to_string(block->reader) +
                                       " before it answered");
    queries_.push_back(std::move(*block));
    return {};
  }

  static result<void> late(step_id step) {
    return fail(errc::malformed, std::string(name) + ": an input of step " +
                                     std::to_string(step.value) + " came after the step");
  }

  /// In the order of steps, each once.
  result<void> keep(flow::verdict verdict, unit_time now) {
    const step_id before = verdicts_.empty() ? settled_ : verdicts_.back().message.step;
    if (verdict.step <= before || verdicts_.size() == steps_max_)
      return fail(errc::malformed, std::string(name) + " got the verdict of step " +
                                       std::to_string(verdict.step.value) + " after that of step " +
                                       std::to_string(before.value) + ", " +
                                       std::to_string(verdicts_.size()) + " wait");
    verdicts_.push_back({std::move(verdict), now});
    return {};
  }

  /// One piece of work; false: what is next has not come.
  result<bool> go_on_with(unit_output& out) {
    const auto query = std::ranges::find_if(
        queries_, [&](const flow::row_block& one) { return one.step <= known_; });
    if (query != queries_.end()) return answer(query, out);
    if (!verdicts_.empty() && verdicts_.front().message.step <= known_) return settle(out);
    auto step = join_.pop();
    if (!step) return false;
    unit_work work = work_of(step->table, step->first_arrival);
    const flow::row_block* keys = step->shared.empty() ? nullptr : &step->shared.front();
    if (const auto done = stage_->extend(step->table, keys); !done) return fail(done.error());
    known_ = step->table.step;
    work.end = shard_clock::now();
    out.work.push_back(work);
    return true;
  }

  result<bool> answer(std::deque<flow::row_block>::iterator query, unit_output& out) {
    const flow::row_block request = std::move(*query);
    queries_.erase(query);
    unit_work work;
    work.step = request.step;
    work.first_arrival = work.begin = shard_clock::now();
    auto found = stage_->answer(request);
    if (!found) return fail(found.error());
    work.end = shard_clock::now();
    work.done = false;
    out.messages.emplace_back(std::move(*found));
    out.work.push_back(work);
    return true;
  }

  result<bool> settle(unit_output& out) {
    const held_verdict next = std::move(verdicts_.front());
    verdicts_.pop_front();
    unit_work work;
    work.step = next.message.step;
    work.first_arrival = next.arrived;
    work.begin = shard_clock::now();
    if (const auto done = stage_->apply(next.message); !done) return fail(done.error());
    settled_ = next.message.step;
    work.end = shard_clock::now();
    out.work.push_back(work);
    return true;
  }

  step_join join_;
  std::size_t steps_max_;
  std::unique_ptr<indexer_stage> stage_;
  std::deque<held_verdict> verdicts_;
  std::deque<flow::row_block> queries_;
  step_id known_;  ///< the last whose keys are here
  step_id settled_;  ///< the last whose verdict has been applied
};

}  // namespace

std::unique_ptr<unit> make_indexer_unit(std::unique_ptr<indexer_stage> stage,
                                        std::size_t steps_max) {
  return std::make_unique<indexer_unit>(std::move(stage), steps_max);
}

}  // namespace cedar::stage
