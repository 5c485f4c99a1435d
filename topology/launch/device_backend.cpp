#include "topology/launch/device_backend.hpp"

#include "kernels/registry/cuda_devices.hpp"
#include "kernels/registry/registry.hpp"
#include "topology/launch/thread_placement.hpp"

namespace cedar::topology {

namespace {

tl::unexpected<error> refused(const device_plan& device, const std::string& why) {
  return fail(errc::refused, "device '" + device.name + "' of kind " +
                                 std::string(to_string(device.kind)) + " cannot run here: " + why);
}

/// The same error for the person who wrote the topology.
tl::unexpected<error> no_cuda(const device_plan& device, const error& why) {
  return refused(device, why.message +
                             " (see 'cedar devices'). Write kind: cpu to compute on this host's "
                             "processors");
}

}  // namespace

result<void> check_devices(const plan& topology, node_id node) {
  for (const unit_id id : topology[node].units) {
    const unit_plan& unit = topology[id];
    if (!unit.device || topology[*unit.device].kind != device_kind::cuda) continue;
    const device_plan& device = topology[*unit.device];
    const auto usable = kernels::usable_cuda_device(device.index);
    if (!usable) return no_cuda(device, usable.error());
  }
  return {};
}

result<std::unique_ptr<kernels::backend>> backend_for(const plan& topology,
                                                      const device_plan& device) {
  if (device.kind == device_kind::cuda) {
    auto made = kernels::make_cuda_backend(device.index);
    if (!made) return no_cuda(device, made.error());
    return made;
  }
  const auto placement = placement_of(topology, device);
  if (!placement) return fail(placement.error());
  auto made = kernels::make_backend(to_string(device.kind), {device.threads, *placement});
  if (!made) return refused(device, "the processor needs AVX2, FMA and F16C");
  return made;
}

}  // namespace cedar::topology
