// The backends of this host for the devices of a topology.
#pragma once

#include <memory>

#include "kernels/ops/backend.hpp"
#include "runtime/base/result.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology {

/// Whether this host and this program can be the CUDA devices that units of `node` are on; looks at
/// nothing but the devices, so that it is said before anything large is read. Error: refused,
/// naming the first that cannot be, why, and what to do.
result<void> check_devices(const plan& topology, node_id node);

/// What computes for `device`, in the process of its node on this host. Errors, each naming the
/// device: refused: this host or this program cannot be that device (the text says what to do);
/// those of placement_of().
result<std::unique_ptr<kernels::backend>> backend_for(const plan& topology,
                                                      const device_plan& device);

}  // namespace cedar::topology
