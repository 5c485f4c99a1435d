#include "topology/plan/internal/memory_checks.hpp"

#include <algorithm>

#include "topology/plan/memory.hpp"

namespace cedar::topology::internal {

void check_memory(const document& topology, const plan& planned, std::vector<diagnostic>& out) {
  const bool asked = std::ranges::any_of(
      planned.devices(), [](const device_plan& device) { return device.memory.has_value(); });
  if (!asked) return;
  const memory_load load = largest_load(planned);
  const std::vector<memory_need> needs = memory_of_devices(planned, load);
  for (const device_plan& device : planned.devices()) {
    const memory_need& need = needs[device.id.value];
    if (!device.memory || need.total() <= *device.memory) continue;
    out.push_back(topology.mistake(
        topology.devices[device.id.value].memory.where,
        "device '" + device.name + "' has " + bytes_text(*device.memory) + ", its units need " +
            bytes_text(need.total()) + ": weights " + bytes_text(need.weights) + ", KV of " +
            std::to_string(load.requests) + " requests of " + std::to_string(load.positions) +
            " positions " + bytes_text(need.kv) + ", a step's work " + bytes_text(need.working) +
            ", credit " + bytes_text(need.credit),
        "move layers or units to another device, or lower limits.requests, limits.context or "
        "limits.rows_per_step"));
  }
}

}  // namespace cedar::topology::internal
