#include "runtime/stage/unit.hpp"

#include "runtime/stage/step_join.hpp"
#include "runtime/stage/tap_messages.hpp"

namespace cedar::stage {

namespace {

using clock = std::chrono::steady_clock;

error unexpected(const char* unit, const flow::message& message) {
  return {errc::malformed,
          std::string(unit) + " got a message it does not take: " + std::string(kind_of(message))};
}

/// A unit whose output follows from the step table alone. Stage: run(table) -> blocks.
template <class Stage>
class table_unit final : public unit {
 public:
  table_unit(Stage stage, const char* name) : stage_(std::move(stage)), name_(name) {}

  result<unit_output> take(flow::message message) override {
    const auto* table = std::get_if<flow::step_table>(&message);
    if (table == nullptr) return fail(unexpected(name_, message));
    const unit_time begin = clock::now();
    unit_output out;
    auto made = stage_.run(*table);
    if (!made) return fail(made.error());
    append(out.messages, std::move(*made));
    out.work.push_back({table->step, table->rows_count(), begin, begin, clock::now()});
    return out;
  }

  void begin_epoch() override {}

 private:
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
    result<void> added;
    if (auto* table = std::get_if<flow::step_table>(&message)) {
      added = join_.add(std::move(*table), clock::now());
    } else if (auto* block = std::get_if<flow::row_block>(&message)) {
      added = join_.add(std::move(*block), clock::now());
    } else if (const auto* verdict = std::get_if<flow::verdict>(&message)) {
      return settle(*verdict);
    } else {
      return fail(unexpected(name(), message));
    }
    if (!added) return fail(added.error());
    while (auto step = join_.pop()) {
      const unit_time begin = clock::now();
      const std::function<void(flow::tap)> keep = [&out](flow::tap tap) {
        out.messages.emplace_back(std::move(tap));
      };
      result<flow::message> made = compute(*step, probes_of(step->table, keep));
      if (!made) return fail(made.error());
      out.messages.push_back(std::move(*made));
      out.work.push_back(
          {step->table.step, step->table.rows_count(), step->first_arrival, begin, clock::now()});
    }
    return out;
  }

  void begin_epoch() override { join_.clear(); }

 protected:
  virtual const char* name() const = 0;
  virtual result<flow::message> compute(const joined_step& step, const model::taps& probes) = 0;
  virtual result<unit_output> settle(const flow::verdict& verdict) = 0;

 private:
  step_join join_;
};

class layer_unit final : public joining_unit {
 public:
  layer_unit(std::unique_ptr<layer_stage> stage, std::size_t steps_max)
      : joining_unit(
            {stage->first_layer() == 0 ? flow::row_kind::embedded : flow::row_kind::activation,
             stage->engram_layers()},
            steps_max),
        stage_(std::move(stage)) {}

  void begin_epoch() override {
    joining_unit::begin_epoch();
    stage_->clear();
  }

 private:
  const char* name() const override { return "a stage"; }

  result<flow::message> compute(const joined_step& step, const model::taps& probes) override {
    auto made = stage_->run(step.table, *step.rows, step.engram, probes);
    if (!made) return fail(made.error());
    return flow::message(std::move(*made));
  }

  result<unit_output> settle(const flow::verdict& verdict) override {
    stage_->apply(verdict);
    return unit_output{};
  }

  std::unique_ptr<layer_stage> stage_;
};

class head_unit final : public joining_unit {
 public:
  head_unit(std::unique_ptr<head_stage> stage, std::size_t steps_max)
      : joining_unit({flow::row_kind::head_input, {}}, steps_max), stage_(std::move(stage)) {}

 private:
  const char* name() const override { return "the head"; }

  result<flow::message> compute(const joined_step& step, const model::taps& probes) override {
    auto made = stage_->run(step.table, *step.rows, probes);
    if (!made) return fail(made.error());
    return flow::message(std::move(*made));
  }

  result<unit_output> settle(const flow::verdict& verdict) override {
    return fail(unexpected(name(), verdict));
  }

  std::unique_ptr<head_stage> stage_;
};

}  // namespace

std::unique_ptr<unit> make_embedding_unit(embedding_stage stage) {
  return std::make_unique<table_unit<embedding_stage>>(std::move(stage), "the embedding");
}

std::unique_ptr<unit> make_engram_unit(engram_stage stage) {
  return std::make_unique<table_unit<engram_stage>>(std::move(stage), "engram");
}

std::unique_ptr<unit> make_layer_unit(std::unique_ptr<layer_stage> stage, std::size_t steps_max) {
  return std::make_unique<layer_unit>(std::move(stage), steps_max);
}

std::unique_ptr<unit> make_head_unit(std::unique_ptr<head_stage> stage, std::size_t steps_max) {
  return std::make_unique<head_unit>(std::move(stage), steps_max);
}

}  // namespace cedar::stage
