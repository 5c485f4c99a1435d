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

}  // namespace cedar::topology
