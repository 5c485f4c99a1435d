// Who reads images.
#pragma once

#include <vector>

#include "runtime/model/config.hpp"
#include "topology/document/document.hpp"

namespace cedar::topology::internal {

/// Vision is placed only if the model has a tower, and if a request can hold the smallest image.
void check_vision(const document& topology, const model::model_config& config,
                  std::vector<diagnostic>& out);

}  // namespace cedar::topology::internal
