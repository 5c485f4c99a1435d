// The operations on a device of this machine.
#pragma once

#include <memory>

#include "kernels/cuda/interface/plugin.hpp"
#include "kernels/ops/backend.hpp"
#include "runtime/base/result.hpp"

namespace cedar::kernels::cuda {

/// As plugin::make_backend. The backend owns a stream of the device.
result<std::unique_ptr<backend>> make_device_backend(const device_description& device);

}  // namespace cedar::kernels::cuda
