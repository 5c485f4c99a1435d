// Which CUDA devices a topology asks for.
#pragma once

#include <vector>

#include "topology/document/document.hpp"

namespace cedar::topology::internal {

/// Reports an index of what is no CUDA device, and two devices of a node that are the same one.
/// What the host has is not known here (topology/launch/device_backend).
void check_cuda(const document& topology, std::vector<diagnostic>& out);

}  // namespace cedar::topology::internal
