// CUDA as this machine offers it to this program: through the module cedar-cuda.so, if it is there.
//
// The module lies beside the program and is opened when somebody asks; it stays open until the
// process ends, as CUDA's threads may. Nothing else of the program knows whether there is CUDA.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/cuda/interface/plugin.hpp"
#include "runtime/base/result.hpp"

namespace cedar::kernels {

/// Where the module of this program is looked for: beside it.
std::filesystem::path cuda_module_path();

/// The devices that CUDA shows this process, usable or not; never none. Errors: not_found: no
/// module, libraries that it needs, driver or device; mismatch: a module of another build, a driver
/// that is too old; io. The text is a sentence for a person: why, and what would help.
result<std::vector<cuda::device_description>> cuda_devices(
    const std::filesystem::path& module = cuda_module_path());

/// Why this program cannot compute on a device that is there.
std::string problem_of(const cuda::device_description& device);

/// Why this program cannot compute on CUDA device `index` of this machine: what cuda_devices() or
/// problem_of() says, or that there is no such index.
std::string cuda_problem(std::uint32_t index,
                         const std::filesystem::path& module = cuda_module_path());

}  // namespace cedar::kernels
