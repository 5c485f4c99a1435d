// Engram rows of a step in parts, one from each shard of a module's table (row_kind::engram_slots).
//
// A step of n rows has n * columns table rows; the place of one among them is its slot. A shard
// sends what its rows fill, and the stage puts the parts of all shards together: every slot once,
// whatever order they came in, or the step is refused.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/engram_shard.hpp"
#include "runtime/model/weights.hpp"

namespace cedar::stage {

/// What `shard`, whose table rows are `rows` [shard.rows_count()], has of a step that needs table
/// rows `addresses` [n * columns] of the shard's module.
flow::row_block make_engram_slots(const flow::step_table& table, const model::model_config& config,
                                  const model::engram_shard& shard,
                                  const model::engram_table_weights& rows,
                                  std::span<const std::uint64_t> addresses);

/// The engram_rows block of the step for the module before `layer`, from the engram_slots of
/// `shards` among `blocks`. Error malformed: a shard's block is missing, is not of the step or of
/// this model, or a slot is filled twice or not at all.
result<flow::row_block> join_engram_slots(const flow::step_table& table,
                                          const model::model_config& config, std::uint32_t layer,
                                          std::span<const model::engram_shard> shards,
                                          std::span<const flow::row_block> blocks);

}  // namespace cedar::stage
