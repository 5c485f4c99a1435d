#include "topology/plan/internal/thread_checks.hpp"

namespace cedar::topology::internal {

namespace {

/// A device that computes on whatever thread calls it, or that this thread waits for.
void check_without_threads(const document& topology, const device_entry& device,
                           std::vector<diagnostic>& out) {
  const std::string name =
      "device '" + device.name.value + "' of kind '" + device.kind.value + "' ";
  if (device.threads.given && device.threads.value > 1)
    out.push_back(topology.mistake(
        device.threads.where,
        name + "has " + std::to_string(device.threads.value) + " threads: " +
            (device.kind.value == "cuda" ? "one gives it its work" : "it computes on one"),
        "remove 'threads', or write kind: cpu"));
  const auto refuse = [&](const auto& entry, const std::string& key) {
    if (entry.given)
      out.push_back(topology.mistake(entry.where,
                                     name + "has '" + key + "', but no threads of its own",
                                     "remove '" + key + "', or write kind: cpu"));
  };
  refuse(device.cores, "cores");
  refuse(device.numa, "numa");
  refuse(device.nice, "nice");
}

bool has_threads(const device_entry& device) {
  return device.kind.value != "reference" && device.kind.value != "cuda";
}

}  // namespace

void check_threads(const document& topology, std::vector<diagnostic>& out) {
  for (const device_entry& device : topology.devices) {
    if (!has_threads(device)) {
      check_without_threads(topology, device, out);
      continue;
    }
    const std::size_t cores = device.cores.value.size();
    if (device.cores.given && device.threads.value > cores)
      out.push_back(topology.mistake(device.threads.where,
                                     "device '" + device.name.value + "' has " +
                                         std::to_string(device.threads.value) + " threads on " +
                                         std::to_string(cores) + (cores == 1 ? " core" : " cores"),
                                     "remove 'threads' for one on each core, or name more cores"));
    if (device.threads.value == 1) continue;
    // Devices of a process share its pool, and no thread can take a nice value back.
    for (const device_entry& other : topology.devices) {
      if (&other == &device) break;
      if (other.node.value != device.node.value || other.threads.value == 1 ||
          !has_threads(other) || other.nice.value == device.nice.value)
        continue;
      out.push_back(topology.mistake(
          device.nice.where,
          "devices '" + other.name.value + "' and '" + device.name.value + "' of node '" +
              device.node.value + "' share threads, but have nice " +
              std::to_string(other.nice.value) + " and " + std::to_string(device.nice.value),
          "give both the same, or put one on a node of its own"));
      break;
    }
  }
}

}  // namespace cedar::topology::internal
