// The transport port of a node: UCX between processes or memory within one, on the links that are
// there or on emulated ones, which can be measured.
#pragma once

#include <memory>

#include "runtime/base/result.hpp"
#include "runtime/transport/port.hpp"
#include "runtime/transport/probed_port.hpp"
#include "runtime/transport/shaped_port.hpp"
#include "topology/launch/node_runtime.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology {

/// The links from `self` to other nodes, as the plan declares them.
transport::shape_options shapes_of(const plan& topology, node_id self);

/// `handler` outlives the port. Errors: those of ucx_options_of and of UCX, naming the node.
result<std::unique_ptr<transport::probed_port>> open_node_port(const plan& topology,
                                                               const node_settings& settings,
                                                               transport::port_handler& handler);

}  // namespace cedar::topology
