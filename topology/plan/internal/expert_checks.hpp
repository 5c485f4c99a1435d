// Checks of `units.experts`: slices of experts that the model has, none on two slices.
#pragma once

#include <vector>

#include "runtime/model/config.hpp"
#include "topology/document/document.hpp"

namespace cedar::topology::internal {

/// The experts of a slice, all of the model's if the file names none. Ascending.
std::vector<std::uint32_t> experts_of(const experts_entry& slice,
                                      const model::model_config& config);

/// Reports layers and experts that the model lacks, and experts of a layer that two slices hold.
/// Those that no slice holds stay with the stage of their layer.
void check_experts(const document& topology, const model::model_config& config,
                   std::vector<diagnostic>& out);

}  // namespace cedar::topology::internal
