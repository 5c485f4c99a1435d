#include "topology/launch/thread_placement.hpp"

#include <algorithm>

namespace cedar::topology {

namespace {

std::string listed(const std::vector<std::uint32_t>& processors) {
  std::string text;
  for (const std::uint32_t each : processors)
    text += (text.empty() ? "" : ", ") + std::to_string(each);
  return text.empty() ? "none" : text;
}

std::vector<std::uint32_t> common(const std::vector<std::uint32_t>& a,
                                  const std::vector<std::uint32_t>& b) {
  std::vector<std::uint32_t> out;
  std::ranges::set_intersection(a, b, std::back_inserter(out));
  return out;
}

bool has_place(const device_plan& device) {
  return !device.cores.empty() || device.numa.has_value();
}

}  // namespace

result<kernels::thread_placement> placement_of(const plan& topology, const device_plan& device) {
  kernels::thread_placement out{device.cores, device.numa, device.nice};
  const bool others = std::ranges::any_of(topology.devices(), [&](const device_plan& other) {
    return other.node == device.node && has_place(other);
  });
  if (!others) return out;
  const std::string name = "device '" + device.name + "'";
  const auto usable = kernels::usable_processors();
  for (const std::uint32_t core : device.cores)
    if (!std::ranges::binary_search(usable, core))
      return fail(errc::refused, name + " is to run on core " + std::to_string(core) +
                                     ", but this process may use " + listed(usable) + " only");
  if (!device.numa) {
    if (device.cores.empty()) out.processors = usable;
    return out;
  }
  const auto of_node = kernels::processors_of_numa_node(*device.numa);
  if (of_node.empty())
    return fail(errc::refused, name + " is to use NUMA node " + std::to_string(*device.numa) +
                                   ", which this host does not have (see 'lscpu')");
  out.processors = common(device.cores.empty() ? usable : device.cores, of_node);
  if (out.processors.empty() || (!device.cores.empty() && out.processors != device.cores))
    return fail(errc::refused, name + " is to use NUMA node " + std::to_string(*device.numa) +
                                   ", whose processors are " + listed(of_node) + ", and cores " +
                                   listed(device.cores.empty() ? usable : device.cores));
  return out;
}

}  // namespace cedar::topology
