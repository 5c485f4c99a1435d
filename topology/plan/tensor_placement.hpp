// Which units of a plan read a tensor, from the configuration alone: a unit's loader maps exactly
// those.
#pragma once

#include <vector>

#include "runtime/model/manifest.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology {

/// Ascending. None: the file places nothing that reads it, and no process maps it. Two: a replica
/// for the drafter, which shares the embedding and the vocabulary projection with the backbone.
std::vector<unit_id> readers_of(const plan& planned, const model::expected_tensor& tensor);

/// Whether several units read parts of it: each row of an Engram table is on one shard.
bool is_in_parts(const plan& planned, const model::expected_tensor& tensor);

/// What `reader` reads of a tensor: the whole, or a tensor of the rows of its shard.
model::expected_tensor part_of(const unit_plan& reader, const model::expected_tensor& tensor);

}  // namespace cedar::topology
