// Collects the inputs of a unit by step, and says which step can run.
//
// 1. A step runs when all its inputs are there, and steps run in ascending order.
// 2. Arrival order does not matter. Two inputs of the same kind for one step are an error.
// 3. At most `steps_max` steps wait; more is an error: credit should have prevented it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"

namespace cedar::stage {

using join_time = std::chrono::steady_clock::time_point;

/// A block of state that another stage shares: shared_kv, index_keys, selection or candidates. Or
/// of Engram rows: engram_rows, engram_slots.
struct shared_input {
  flow::row_kind kind = flow::row_kind::shared_kv;
  std::uint32_t layer = 0;  ///< that made it; Engram rows: whose module it is
  std::uint32_t slice = 0;  ///< engram_slots, and index_keys for a shard: its number

  auto operator<=>(const shared_input&) const = default;
};

/// The inputs that a unit waits for besides the step table.
struct join_inputs {
  std::optional<flow::row_kind> rows;  ///< embedded, activation, head_input or image_rows
  std::vector<shared_input> engram;  ///< one block for each
  std::vector<shared_input> shared{};  ///< one block for each
  /// The steps whose `rows` are waited for; empty: all of them.
  std::function<bool(const flow::step_table&)> has_rows{};
  /// Whether a step has the blocks of `shared`; empty: each has.
  std::function<bool(const flow::step_table&)> has_shared{};
};

struct joined_step {
  flow::step_table table;
  std::optional<flow::row_block> rows;
  std::vector<flow::row_block> engram;  ///< by kind, layer and shard
  std::vector<flow::row_block> shared;
  join_time first_arrival;  ///< of any input of the step
  /// From the last of all other inputs until the last Engram rows; none: they were not last.
  std::optional<join_time::duration> engram_wait{};
};

class step_join {
 public:
  step_join(join_inputs inputs, std::size_t steps_max)
      : inputs_(std::move(inputs)), steps_max_(steps_max) {}

  /// Error malformed: an input that the unit does not expect, twice the same, or too many steps.
  result<void> add(flow::step_table table, join_time now);
  result<void> add(flow::row_block block, join_time now);

  /// The oldest step, if it is complete.
  std::optional<joined_step> pop();

  /// Steps that wait, complete or not.
  std::size_t waiting() const noexcept { return steps_.size(); }
  void clear() { steps_.clear(); }

 private:
  struct partial {
    std::optional<flow::step_table> table;
    std::optional<flow::row_block> rows;
    std::map<shared_input, flow::row_block> others;  ///< Engram rows and shared state
    join_time first_arrival;
    join_time last_engram{};
    join_time last_other{};
  };

  result<partial*> partial_of(step_id step, join_time now);

  join_inputs inputs_;
  std::size_t steps_max_;
  std::map<step_id, partial> steps_;
};

}  // namespace cedar::stage
