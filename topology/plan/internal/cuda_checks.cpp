#include "topology/plan/internal/cuda_checks.hpp"

namespace cedar::topology::internal {

void check_cuda(const document& topology, std::vector<diagnostic>& out) {
  for (const device_entry& device : topology.devices) {
    if (device.kind.wrong || device.index.wrong) continue;
    const std::string index = std::to_string(device.index.value);
    if (device.kind.value != "cuda") {
      if (device.index.given)
        out.push_back(topology.mistake(device.index.where,
                                       "device '" + device.name.value + "' of kind '" +
                                           device.kind.value + "' has 'index', which is CUDA's",
                                       "remove 'index', or write kind: cuda"));
      continue;
    }
    // Each would believe that the memory is its own.
    for (const device_entry& other : topology.devices) {
      if (&other == &device) break;
      if (other.node.value != device.node.value || other.kind.value != "cuda" ||
          other.index.value != device.index.value)
        continue;
      out.push_back(topology.mistake(
          device.index.where,
          "devices '" + other.name.value + "' and '" + device.name.value + "' of node '" +
              device.node.value + "' are both CUDA device " + index,
          "write another index, or put the units of both on '" + other.name.value + "'"));
      break;
    }
  }
}

}  // namespace cedar::topology::internal
