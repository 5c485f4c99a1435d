#include "tests/integration/support/topology_text.hpp"

#include <utility>

namespace cedar::test {

std::string topology_text(const topology_options& options) {
  const std::size_t last = options.cuts.size();
  std::string nodes;
  std::string devices;
  std::string stages;
  std::uint32_t first = 0;
  for (std::size_t i = 0; i <= last; ++i) {
    const std::string n = std::to_string(i);
    const std::uint32_t end = i == last ? options.layers - 1 : options.cuts[i];
    nodes += "  node" + n + ": {address: 127.0.0.1}\n";
    devices += "  cpu" + n + ": {node: node" + n + ", kind: cpu}\n";
    stages += "    - {name: stage" + n + ", layers: " + std::to_string(first) + "-" +
              std::to_string(end) + ", device: cpu" + n + "}\n";
    first = end + 1;
  }
  for (const auto& [node, device] :
       {std::pair(options.drafter, "draft-cpu"), std::pair(options.vision, "vision-cpu"),
        std::pair(options.experts, "experts-cpu")}) {
    if (node.empty()) continue;
    if (nodes.find(" " + node + ":") == std::string::npos)
      nodes += "  " + node + ": {address: 127.0.0.1}\n";
    devices += std::string("  ") + device + ": {node: " + node + ", kind: cpu}\n";
  }
  std::string text = "cedar: 1\n";
  if (!options.model.empty()) text += "model: {path: " + options.model + "}\n";
  text += "nodes:\n" + nodes + "client: node0\ndevices:\n" + devices;
  text += "units:\n  scheduler: {node: node0}\n  embedding: {device: cpu0}\n";
  if (options.engram) text += "  engram: {device: cpu0}\n";
  text += "  stages:\n" + stages + "  head: {device: cpu" + std::to_string(last) + "}\n";
  if (!options.vision.empty()) text += "  vision: {device: vision-cpu}\n";
  if (!options.experts.empty())
    text += "  experts:\n    - {name: half, layers: 0-" + std::to_string(options.layers - 1) +
            ", experts: 0-3, device: experts-cpu}\n";
  if (!options.drafter.empty()) text += "  drafter: {device: draft-cpu}\ndraft: fixed:5\n";
  text += options.loopback        ? "transport: {kind: loopback}\n"
          : options.shared_memory ? "transport: {kind: ucx, tls: [posix, sysv, tcp, self]}\n"
                                  : "transport: {kind: ucx, tls: [tcp, self]}\n";
  return text + options.more + (options.more.empty() ? "" : "\n");
}

}  // namespace cedar::test
