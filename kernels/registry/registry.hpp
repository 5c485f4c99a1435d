// The backends that this program has and this machine can run. Built from an explicit list: nothing
// registers itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/base/placement.hpp"
#include "kernels/ops/backend.hpp"

namespace cedar::kernels {

/// Names that make_backend accepts here, the preferred one first. Never empty.
std::vector<std::string_view> backend_names();

struct backend_options {
  std::uint32_t threads = 1;  ///< that a call is divided among, the caller's included; at least 1
  thread_placement placement{};  ///< of these threads (make_cpu_backend); for `cpu` only
};

/// The most threads that make_backend accepts for that name: 1 for a backend that computes on the
/// calling thread alone; 0 for a name that backend_names() does not have.
std::uint32_t most_threads(std::string_view name);

/// The backend of that name; null if there is none or this machine lacks what it needs. Defect: no
/// thread, or more than most_threads(name); a placement that the backend or this process cannot
/// have.
std::unique_ptr<backend> make_backend(std::string_view name, const backend_options& options = {});

}  // namespace cedar::kernels
