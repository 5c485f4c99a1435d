// The units that images pass: vision, and the embedding where vision is placed.
#include <algorithm>
#include <deque>
#include <set>

#include "runtime/stage/step_join.hpp"
#include "runtime/stage/unit_parts.hpp"

namespace cedar::stage {

namespace {

using clock = std::chrono::steady_clock;

/// `stage` outlives them.
join_inputs inputs_of(const embedding_stage& stage) {
  join_inputs out;
  out.rows = flow::row_kind::image_rows;
  out.has_rows = [&stage](const flow::step_table& table) { return stage.has_images(table); };
  return out;
}

class image_embedding_unit final : public unit {
 public:
  image_embedding_unit(embedding_stage stage, std::size_t steps_max)
      : stage_(std::move(stage)), join_(inputs_of(stage_), steps_max) {}
  image_embedding_unit(const image_embedding_unit&) = delete;
  image_embedding_unit& operator=(const image_embedding_unit&) = delete;

  result<unit_output> take(flow::message message) override {
    if (const result<void> kept = keep(std::move(message)); !kept) return fail(kept.error());
    unit_output out;
    while (auto step = join_.pop()) {
      unit_work work = work_of(step->table, step->first_arrival);
      auto made = step->rows ? stage_.run(step->table, *step->rows) : stage_.run(step->table);
      if (!made) return fail(made.error());
      last_ = step->table.step;
      out.messages.emplace_back(std::move(*made));
      work.end = clock::now();
      out.work.push_back(work);
    }
    return out;
  }

  void begin_epoch() override {
    join_.clear();
    last_ = {};
  }

 private:
  result<void> keep(flow::message message) {
    if (auto* table = std::get_if<flow::step_table>(&message))
      return join_.add(std::move(*table), clock::now());
    auto* block = std::get_if<flow::row_block>(&message);
    if (block == nullptr) return fail(unexpected("the embedding", message));
    if (block->step <= last_)
      return fail(errc::malformed, "the embedding got rows of images of step " +
                                       std::to_string(block->step.value) +
                                       ", which has been embedded");
    return join_.add(std::move(*block), clock::now());
  }

  embedding_stage stage_;
  step_join join_;
  step_id last_;  ///< that was embedded
};

/// Images, tables and verdicts come on edges of their own. An image is computed when it comes; a
/// table waits for its images; a verdict waits for nothing: no step with rows of images can end
/// before they have left here. Table and verdict of a step are used up when both are there, so that
/// credit bounds how far the unit may be behind.
class vision_unit final : public unit {
 public:
  vision_unit(std::unique_ptr<vision_stage> stage, std::size_t steps_max)
      : stage_(std::move(stage)), steps_max_(steps_max) {}

  result<unit_output> take(flow::message message) override {
    unit_output out;
    result<void> taken;
    if (const auto* image = std::get_if<flow::step_image>(&message))
      taken = add(*image, out);
    else if (auto* table = std::get_if<flow::step_table>(&message))
      taken = keep(std::move(*table));
    else if (const auto* verdict = std::get_if<flow::verdict>(&message))
      taken = settle(*verdict, out);
    else
      taken = fail(unexpected(name, message));
    while (taken && !tables_.empty() && stage_->covers(tables_.front().message))
      taken = run_first(out);
    if (!taken) return fail(taken.error());
    return out;
  }

  bool is_input_of_step(const flow::message& message) const override {
    return !std::holds_alternative<flow::step_image>(message);
  }

  void begin_epoch() override {
    stage_->clear();
    tables_.clear();
    early_.clear();
    added_.clear();
    last_ = ran_ = settled_ = {};
  }

 private:
  static constexpr const char* name = "vision";

  struct held_table {
    flow::step_table message;
    unit_time arrived;
  };

  static tl::unexpected<error> refused(step_id step, const std::string& what) {
    return fail(errc::malformed,
                std::string(name) + ": step " + std::to_string(step.value) + ": " + what);
  }

  result<void> add(const flow::step_image& image, unit_output& out) {
    if (image.step <= ran_) return refused(image.step, "an image after its step was run");
    // Images come in the order of steps.
    if (!tables_.empty() && tables_.front().message.step < image.step)
      return refused(
          tables_.front().message.step,
          "an image is missing, and one of step " + std::to_string(image.step.value) + " has come");
    unit_work work = begin(image.step);
    work.rows = image.image.image.rows_count;
    if (const auto made = stage_->add(image.image); !made) return made;
    added_.push_back(image);
    added_.back().image.image.pixels = nullptr;
    work.end = clock::now();
    work.done = false;
    out.work.push_back(work);
    return {};
  }

  result<void> keep(flow::step_table table) {
    if (table.step <= last_ || tables_.size() == steps_max_)
      return refused(table.step, "its table came after that of step " +
                                     std::to_string(last_.value) + ", " +
                                     std::to_string(tables_.size()) + " wait");
    last_ = table.step;
    tables_.push_back({std::move(table), clock::now()});
    return {};
  }

  /// Every image that came for the step begins in it: others would never be forgotten.
  result<void> check_added(const flow::step_table& table) {
    for (; !added_.empty() && added_.front().step <= table.step; added_.pop_front()) {
      const flow::request_image& image = added_.front().image;
      const auto holds = [&](const flow::row_span& span) {
        return span.request == image.request && span.first_position <= image.image.position &&
               image.image.position - span.first_position < span.rows_count;
      };
      if (added_.front().step != table.step || std::ranges::none_of(table.spans, holds))
        return refused(table.step, "an image came that does not begin in it");
    }
    return {};
  }

  result<void> run_first(unit_output& out) {
    const held_table next = std::move(tables_.front());
    tables_.pop_front();
    const flow::step_table& table = next.message;
    unit_work work = begin(table.step);
    work.first_arrival = next.arrived;
    if (const result<void> added = check_added(table); !added) return added;
    auto rows = stage_->run_block(table);
    if (!rows) return fail(rows.error());
    if (*rows) out.messages.emplace_back(std::move(**rows));
    ran_ = table.step;
    work.end = clock::now();
    work.done = early_.erase(table.step) > 0;
    out.work.push_back(work);
    return {};
  }

  result<void> settle(const flow::verdict& verdict, unit_output& out) {
    if (verdict.step <= settled_ || early_.size() == steps_max_)
      return refused(verdict.step, "its verdict came after that of step " +
                                       std::to_string(settled_.value) + ", " +
                                       std::to_string(early_.size()) + " wait for tables");
    settled_ = verdict.step;
    unit_work work = begin(verdict.step);
    stage_->apply(verdict);
    work.end = clock::now();
    if (verdict.step <= ran_)
      out.work.push_back(work);
    else
      early_.insert(verdict.step);
    return {};
  }

  static unit_work begin(step_id step) {
    unit_work work;
    work.step = step;
    work.first_arrival = work.begin = clock::now();
    return work;
  }

  std::unique_ptr<vision_stage> stage_;
  std::size_t steps_max_;
  std::deque<held_table> tables_;  ///< the first one's images are not all here
  std::deque<flow::step_image> added_;  ///< of steps that were not run; without pixels
  std::set<step_id> early_;  ///< settled before their table was run: they have no rows of images
  step_id last_;  ///< whose table came
  step_id ran_;
  step_id settled_;
};

}  // namespace

std::unique_ptr<unit> make_image_embedding_unit(embedding_stage stage, std::size_t steps_max) {
  return std::make_unique<image_embedding_unit>(std::move(stage), steps_max);
}

std::unique_ptr<unit> make_vision_unit(std::unique_ptr<vision_stage> stage, std::size_t steps_max) {
  return std::make_unique<vision_unit>(std::move(stage), steps_max);
}

}  // namespace cedar::stage
