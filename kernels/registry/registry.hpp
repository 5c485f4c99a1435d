// The backends that this program has and this machine can run. Built from an explicit list: nothing
// registers itself.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "kernels/ops/backend.hpp"

namespace cedar::kernels {

/// Names that make_backend accepts here, the preferred one first. Never empty.
std::vector<std::string_view> backend_names();

/// The backend of that name; null if there is none or this machine lacks what it needs.
std::unique_ptr<backend> make_backend(std::string_view name);

}  // namespace cedar::kernels
