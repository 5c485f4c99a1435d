#include "runtime/stage/unit.hpp"

#include <algorithm>
#include <iterator>

#include "kernels/base/check.hpp"
#include "runtime/stage/step_join.hpp"
#include "runtime/stage/tap_messages.hpp"
#include "runtime/stage/unit_parts.hpp"

namespace cedar::stage {

namespace {

using clock = std::chrono::steady_clock;

/// A unit whose output follows from the step table alone. Stage: run(table) -> blocks.
template <class Stage>
class table_unit final : public unit {
 public:
  table_unit(Stage stage, const char* name) : stage_(std::move(stage)), name_(name) {}

  result<unit_output> take(flow::message message) override {
    const auto* table = std::get_if<flow::step_table>(&message);
    if (table == nullptr) return fail(unexpected(name_, message));
    unit_work work = work_of(*table, clock::now());
    unit_output out;
    auto made = stage_.run(*table);
    if (!made) return fail(made.error());
    work.engram.rows_sent = table_rows_in(*made);
    append(out.messages, std::move(*made));
    work.end = clock::now();
    out.work.push_back(work);
    return out;
  }

  void begin_epoch() override {}

 private:
  static std::uint64_t table_rows_in(const flow::row_block&) { return 0; }
  std::uint64_t table_rows_in(const std::vector<flow::row_block>& blocks) const {
    std::uint64_t rows = 0;
    for (const flow::row_block& block : blocks) rows += stage_.table_rows_in(block);
    return rows;
  }
  static void append(std::vector<flow::message>& messages, flow::row_block block) {
    messages.emplace_back(std::move(block));
  }
  static void append(std::vector<flow::message>& messages, std::vector<flow::row_block> blocks) {
    for (flow::row_block& block : blocks) messages.emplace_back(std::move(block));
  }

  Stage stage_;
  const char* name_;
};

/// A unit that joins a step table with rows before it computes.
class joining_unit : public unit {
 public:
  joining_unit(join_inputs inputs, std::size_t steps_max) : join_(std::move(inputs), steps_max) {}

  result<unit_output> take(flow::message message) override {
    unit_output out;
    result<void> taken;
    if (auto* table = std::get_if<flow::step_table>(&message)) {
      taken = join_.add(std::move(*table), clock::now());
    } else if (auto* block = std::get_if<flow::row_block>(&message)) {
      taken = take_block(std::move(*block), out);
    } else if (const auto* verdict = std::get_if<flow::verdict>(&message)) {
      taken = settle(*verdict);
    } else {
      taken = fail(unexpected(name(), message));
    }
    while (taken && !busy()) {
      auto step = join_.pop();
      if (!step) break;
      const flow::step_table table = step->table;  // the step itself moves on
      const engram_counts engram = engram_of(*step);
      taken = work_on(table, step->first_arrival, out, [&](const tap_receiver& keep) {
        return compute(std::move(*step), probes_of(table, keep));
      });
      if (taken) out.work.back().engram = engram;
    }
    if (!taken) return fail(taken.error());
    out.more = has_more();
    return out;
  }

  void begin_epoch() override { join_.clear(); }

 protected:
  using tap_receiver = std::function<void(flow::tap)>;
  using messages = std::vector<flow::message>;

  virtual const char* name() const = 0;
  /// The messages of a step that is complete.
  virtual result<messages> compute(joined_step step, const model::taps& probes) = 0;
  virtual result<void> settle(const flow::verdict& verdict) = 0;
  /// True while a step that was begun has not ended.
  virtual bool busy() const { return false; }
  /// True if it waits for nothing.
  virtual bool has_more() const { return false; }
  /// A block, which by default is an input of its step.
  virtual result<void> take_block(flow::row_block block, unit_output& /*out*/) {
    return join_.add(std::move(block), clock::now());
  }

  /// Runs `computation` of a step, keeps its taps and messages in `out` and notes how long it took.
  template <class Computation>
  result<void> work_on(const flow::step_table& table, unit_time arrived, unit_output& out,
                       const Computation& computation) {
    unit_work work = work_of(table, arrived);
    const tap_receiver keep = [&out](flow::tap tap) { out.messages.emplace_back(std::move(tap)); };
    result<messages> made = computation(keep);
    if (!made) return fail(made.error());
    std::ranges::move(*made, std::back_inserter(out.messages));
    work.end = clock::now();
    work.done = !busy();
    if (work.done)
      if (auto end = end_of_taps(table)) out.messages.emplace_back(std::move(*end));
    out.work.push_back(work);
    return {};
  }

 private:
  static engram_counts engram_of(const joined_step& step) {
    engram_counts out;
    if (step.engram.empty()) return out;
    out.steps = 1;
    if (!step.engram_wait) return out;
    out.late = 1;
    out.waited_us = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(*step.engram_wait).count());
    return out;
  }

  step_join join_;
};

class layer_unit final : public joining_unit {
 public:
  layer_unit(std::unique_ptr<layer_stage> stage, std::size_t steps_max)
      : joining_unit(
            {stage->first_layer() == 0 ? flow::row_kind::embedded : flow::row_kind::activation,
             stage->engram_inputs(), stage->shared_inputs()},
            steps_max),
        stage_(std::move(stage)) {}

  void begin_epoch() override {
    joining_unit::begin_epoch();
    stage_->clear();
  }
  cache_bytes caches() const override { return stage_->caches(); }

 private:
  const char* name() const override { return "a stage"; }
  bool busy() const override { return stage_->suspended(); }

  static result<messages> as_messages(result<std::vector<flow::row_block>> blocks) {
    if (!blocks) return fail(blocks.error());
    return messages(std::make_move_iterator(blocks->begin()),
                    std::make_move_iterator(blocks->end()));
  }

  result<messages> compute(joined_step step, const model::taps& probes) override {
    return as_messages(stage_->begin(std::move(step), probes));
  }

  result<void> take_block(flow::row_block block, unit_output& out) override {
    if (block.kind == flow::row_kind::gather_request) {
      auto answer = stage_->answer(block);
      if (!answer) return fail(answer.error());
      out.messages.emplace_back(std::move(*answer));
      return {};
    }
    if (!is_reply(block.kind)) return joining_unit::take_block(std::move(block), out);
    if (!busy()) return fail(unexpected(name(), flow::message(std::move(block))));
    return go_on_with_step(
        out, [&](const model::taps& probes) { return stage_->resume(block, probes); });
  }

  result<unit_output> go_on() override {
    CEDAR_REQUIRE(has_more(), "a stage that waits, or is idle, cannot go on");
    unit_output out;
    const auto went =
        go_on_with_step(out, [&](const model::taps& probes) { return stage_->go_on(probes); });
    if (!went) return fail(went.error());
    return out;
  }

  /// Another stretch of the step that was begun.
  template <class Stretch>
  result<void> go_on_with_step(unit_output& out, const Stretch& stretch) {
    const flow::step_table table = *stage_->suspended_table();
    auto went = work_on(table, clock::now(), out, [&](const tap_receiver& keep) {
      return as_messages(stretch(probes_of(table, keep)));
    });
    if (went) out.work.back().rows = out.work.back().decoder_rows = 0;
    return went;
  }

  bool has_more() const override { return stage_->can_go_on(); }

  result<void> settle(const flow::verdict& verdict) override { return stage_->apply(verdict); }

  std::unique_ptr<layer_stage> stage_;
};

class expert_unit final : public unit {
 public:
  explicit expert_unit(std::unique_ptr<expert_stage> stage) : stage_(std::move(stage)) {}

  result<unit_output> take(flow::message message) override {
    const auto* request = std::get_if<flow::row_block>(&message);
    if (request == nullptr) return fail(unexpected("a slice of experts", message));
    unit_work work;
    work.step = request->step;
    work.rows = request->rows_count;
    work.first_arrival = work.begin = clock::now();
    auto answer = stage_->answer(*request);
    if (!answer) return fail(answer.error());
    work.end = clock::now();
    work.done = false;
    unit_output out;
    out.messages.emplace_back(std::move(*answer));
    out.work.push_back(work);
    return out;
  }

  void begin_epoch() override {}

 private:
  std::unique_ptr<expert_stage> stage_;
};

class head_unit final : public joining_unit {
 public:
  head_unit(std::unique_ptr<head_stage> stage, std::size_t steps_max)
      : joining_unit({flow::row_kind::head_input, {}}, steps_max), stage_(std::move(stage)) {}

  void begin_epoch() override {
    joining_unit::begin_epoch();
    stage_->clear();
  }

 private:
  const char* name() const override { return "the head"; }

  result<messages> compute(joined_step step, const model::taps& probes) override {
    auto made = stage_->run(step.table, *step.rows, probes);
    if (!made) return fail(made.error());
    messages out;
    out.emplace_back(std::move(*made));
    return out;
  }

  result<void> settle(const flow::verdict& verdict) override {
    stage_->apply(verdict);
    return {};
  }

  std::unique_ptr<head_stage> stage_;
};

}  // namespace

result<unit_output> unit::go_on() {
  CEDAR_REQUIRE(false, "a unit that has no more to do cannot go on");
  return {};
}

bool unit::is_input_of_step(const flow::message& message) const {
  if (const auto* block = std::get_if<flow::row_block>(&message))
    return !is_request(block->kind) && !is_reply(block->kind);
  return !std::holds_alternative<flow::verdict>(message);
}

std::unique_ptr<unit> make_embedding_unit(embedding_stage stage) {
  return std::make_unique<table_unit<embedding_stage>>(std::move(stage), "the embedding");
}

std::unique_ptr<unit> make_engram_unit(engram_stage stage) {
  return std::make_unique<table_unit<engram_stage>>(std::move(stage), "engram");
}

std::unique_ptr<unit> make_layer_unit(std::unique_ptr<layer_stage> stage, std::size_t steps_max) {
  return std::make_unique<layer_unit>(std::move(stage), steps_max);
}

std::unique_ptr<unit> make_expert_unit(std::unique_ptr<expert_stage> stage) {
  return std::make_unique<expert_unit>(std::move(stage));
}

std::unique_ptr<unit> make_head_unit(std::unique_ptr<head_stage> stage, std::size_t steps_max) {
  return std::make_unique<head_unit>(std::move(stage), steps_max);
}

}  // namespace cedar::stage
