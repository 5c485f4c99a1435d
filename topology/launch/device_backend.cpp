#include "topology/launch/device_backend.hpp"

#include "kernels/registry/cuda_devices.hpp"
#include "kernels/registry/registry.hpp"
#include "topology/launch/thread_placement.hpp"

namespace cedar::topology {

namespace {

tl::unexpected<error> refused(const device_plan& device) {
  const std::string reason =
      device.kind == device_kind::cuda
          ? kernels::cuda_problem(device.index) +
                " (see 'cedar devices'). Write kind: cpu to compute on this host's processors"
          : "the processor needs AVX2, FMA and F16C";
  return fail(errc::refused, "device '" + device.name + "' of kind " +
                                 std::string(to_string(device.kind)) +
                                 " cannot run here: " + reason);
}

}  // namespace

result<void> check_devices(const plan& topology, node_id node) {
  for (const unit_id id : topology[node].units) {
    const unit_plan& unit = topology[id];
    if (unit.device && topology[*unit.device].kind == device_kind::cuda)
      return refused(topology[*unit.device]);
  }
  return {};
}

result<std::unique_ptr<kernels::backend>> backend_for(const plan& topology,
                                                      const device_plan& device) {
  const auto placement = placement_of(topology, device);
  if (!placement) return fail(placement.error());
  auto made = kernels::make_backend(to_string(device.kind), {device.threads, *placement});
  if (made) return made;
  return refused(device);
}

}  // namespace cedar::topology
