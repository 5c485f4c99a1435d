// What handles promise of every runtime, on device 0.
#pragma once

#include "kernels/cuda/handles/runtime.hpp"

namespace cedar::test {

/// Bytes go to the device and back, zeros from it.
void check_copies(kernels::cuda::runtime& api);
/// A stream that waits for an event of another one reads what that wrote.
void check_events(kernels::cuda::runtime& api);
/// What is captured is not done; what is launched is, each time.
void check_graphs(kernels::cuda::runtime& api);
/// A capture that cannot be is an error, and leaves the stream as it was.
void check_failed_captures(kernels::cuda::runtime& api);

}  // namespace cedar::test
