// Where this host has what a device of the topology asks for.
#pragma once

#include "kernels/base/placement.hpp"
#include "runtime/base/result.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology {

/// Where the threads of `device` run, in the process of its node on this host. Where one device of
/// a node names cores, the others are told to use any: threads take over what the thread that
/// started them was restricted to. errc::refused: this host has no such NUMA node, or this process
/// may not use one of the cores.
result<kernels::thread_placement> placement_of(const plan& topology, const device_plan& device);

}  // namespace cedar::topology
