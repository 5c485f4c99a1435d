// The CUDA runtime library as a `runtime`. Part of the module, never of the program.
#pragma once

#include <memory>

#include "kernels/cuda/handles/runtime.hpp"

namespace cedar::kernels::cuda {

/// From any thread. Without a driver all of its functions return errors.
std::unique_ptr<runtime> make_cudart_runtime();

}  // namespace cedar::kernels::cuda
