// Checks of `units.engram`: tables that the model has, every row of them on one shard.
#pragma once

#include <vector>

#include "runtime/model/config.hpp"
#include "runtime/model/engram_shard.hpp"
#include "topology/document/document.hpp"

namespace cedar::topology::internal {

/// The rows of a shard, whose layer the model has a module before; numbered `number`. Up to the
/// table's end if the file does not say to which.
model::engram_shard shard_of(const engram_entry& entry, const model::model_config& config,
                             std::uint32_t number);

/// Reports `units.engram` without modules and the reverse, layers and rows that the model lacks,
/// rows that two shards hold, and those that none does.
void check_engram(const document& topology, const model::model_config& config,
                  std::vector<diagnostic>& out);

}  // namespace cedar::topology::internal
