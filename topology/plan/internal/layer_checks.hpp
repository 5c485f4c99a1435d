// Checks of how the stages divide the layers: each layer on exactly one stage, in order.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/config.hpp"
#include "topology/document/document.hpp"

namespace cedar::topology::internal {

/// Reports overlaps, gaps, layers that the model lacks and stages out of order. True if there were
/// none and the layers of every stage are known.
bool check_layers(const document& topology, const model::model_config& config,
                  std::vector<diagnostic>& out);

/// "layer 3", "layers 3, 5-7": ascending layers in words.
std::string layers_text(const std::vector<std::uint32_t>& layers);

}  // namespace cedar::topology::internal
