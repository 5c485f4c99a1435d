// CUDA as this machine offers it to this program: through the module cedar-cuda.so, if it is there.
//
// The module lies beside the program and is opened when somebody asks; it stays open until the
// process ends, as CUDA's threads may. Nothing else of the program knows whether there is CUDA.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
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

/// Whether this program can compute on a device that is there. Error: refused, why not.
result<void> check_usable(const cuda::device_description& device);

/// CUDA device `index`, usable. Errors: those of cuda_devices() and check_usable(); not_found:
/// there is no such index.
result<cuda::device_description> usable_cuda_device(
    std::uint32_t index, const std::filesystem::path& module = cuda_module_path());

/// A backend that computes on CUDA device `index`. Its calls return when their results are there.
/// Errors: those of usable_cuda_device(); capacity, io.
result<std::unique_ptr<backend>> make_cuda_backend(
    std::uint32_t index, const std::filesystem::path& module = cuda_module_path());

}  // namespace cedar::kernels
