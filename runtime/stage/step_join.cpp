#include "runtime/stage/step_join.hpp"

#include <algorithm>

namespace cedar::stage {

result<step_join::partial*> step_join::partial_of(step_id step, join_time now) {
  const auto found = steps_.find(step);
  if (found != steps_.end()) return &found->second;
  if (steps_.size() == steps_max_)
    return fail(errc::malformed, "step " + std::to_string(step.value) + " arrived while " +
                                     std::to_string(steps_max_) + " steps wait for inputs");
  partial& made = steps_[step];
  made.first_arrival = now;
  return &made;
}

namespace {

bool is_engram(flow::row_kind kind) {
  return kind == flow::row_kind::engram_rows || kind == flow::row_kind::engram_slots;
}

error twice(const char* what, step_id step) {
  return {errc::malformed,
          "step " + std::to_string(step.value) + ": a second " + what + " arrived"};
}

}  // namespace

result<void> step_join::add(flow::step_table table, join_time now) {
  const result<partial*> step = partial_of(table.step, now);
  if (!step) return fail(step.error());
  if ((*step)->table) return fail(twice("step table", table.step));
  (*step)->table = std::move(table);
  (*step)->last_other = now;
  return {};
}

result<void> step_join::add(flow::row_block block, join_time now) {
  const shared_input key{block.kind, block.layer, block.slice};
  const bool engram = std::ranges::count(inputs_.engram, key) > 0;
  const bool other = engram || std::ranges::count(inputs_.shared, key) > 0;
  if (!other && inputs_.rows != block.kind)
    return fail(errc::malformed, "step " + std::to_string(block.step.value) +
                                     ": rows of a kind this unit does not take");
  const result<partial*> step = partial_of(block.step, now);
  if (!step) return fail(step.error());
  const step_id id = block.step;
  if (other) {
    if (!(*step)->others.try_emplace(key, std::move(block)).second)
      return fail(twice(engram ? "block of Engram rows" : "block of shared state", id));
    (engram ? (*step)->last_engram : (*step)->last_other) = now;
    return {};
  }
  if ((*step)->rows) return fail(twice("block of rows", id));
  (*step)->rows = std::move(block);
  (*step)->last_other = now;
  return {};
}

std::optional<joined_step> step_join::pop() {
  if (steps_.empty()) return std::nullopt;
  partial& oldest = steps_.begin()->second;
  if (!oldest.table) return std::nullopt;
  const bool has_rows = inputs_.rows && (!inputs_.has_rows || inputs_.has_rows(*oldest.table));
  const bool has_shared = !inputs_.has_shared || inputs_.has_shared(*oldest.table);
  const std::size_t others = inputs_.engram.size() + (has_shared ? inputs_.shared.size() : 0);
  if ((has_rows && !oldest.rows) || oldest.others.size() != others) return std::nullopt;
  joined_step out{
      std::move(*oldest.table), std::move(oldest.rows), {}, {}, oldest.first_arrival, {}};
  for (auto& [key, block] : oldest.others)
    (is_engram(key.kind) ? out.engram : out.shared).push_back(std::move(block));
  if (!inputs_.engram.empty() && oldest.last_engram > oldest.last_other)
    out.engram_wait = oldest.last_engram - oldest.last_other;
  steps_.erase(steps_.begin());
  return out;
}

}  // namespace cedar::stage
