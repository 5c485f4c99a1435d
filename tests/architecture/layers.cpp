#include "tests/architecture/layers.hpp"

namespace cedar::architecture {

const layer_table& layers() {
  // Highest first. An arrow may only point to a lower block.
  static const layer_table table = {
      {"tools/cedar",
       {"topology/launch", "runtime/http", "runtime/http/client", "runtime/local",
        "runtime/synthetic", "runtime/text", "runtime/store", "kernels/registry"}},

      // A node that was spawned makes the backends of its own devices.
      {"topology/launch", {"topology/plan", "actors", "kernels/registry"}},
      // Plans speak of edges in the terms of runtime/flow: one formula for credit, not two.
      // And of prompts' modes in those of runtime/session, of KV in pages of runtime/memory.
      {"topology/plan",
       {"topology/document", "runtime/model", "runtime/memory", "runtime/session", "runtime/flow",
        "runtime/base"}},
      {"topology/document", {"runtime/base"}},

      {"actors",
       {"runtime/stage", "runtime/session", "runtime/flow", "runtime/wire", "runtime/transport"}},
      {"runtime/local", {"runtime/stage", "runtime/session", "runtime/flow"}},

      // Engram's addresses come from the compressed vocabulary, which comes from the tokenizer.
      {"runtime/stage",
       {"runtime/model", "runtime/vision", "runtime/memory", "runtime/store", "runtime/text",
        "runtime/flow"}},

      {"runtime/http", {"runtime/session", "runtime/image", "runtime/text", "runtime/flow"}},
      {"runtime/http/client", {"runtime/base"}},
      {"runtime/synthetic", {"runtime/model", "runtime/store", "runtime/base"}},
      {"runtime/wire", {"runtime/flow", "schemas"}},
      // A port carries flow::frame.
      {"runtime/transport", {"runtime/flow", "runtime/base"}},
      // Requests declare what their images take.
      {"runtime/session", {"runtime/flow", "runtime/image"}},
      // What drives devices returns runtime/base's result: a driver fails as files and peers do.
      {"kernels/registry", {"kernels/reference", "kernels/cpu", "kernels/cuda/interface"}},
      {"kernels/cuda", {"kernels/cuda/interface"}},
      {"kernels/cuda/interface", {"kernels/plan", "kernels/ops", "runtime/base"}},

      {"runtime/vision", {"runtime/model", "runtime/image", "runtime/store", "kernels/ops"}},

      // A configuration's manifest is compared with the headers of a checkpoint.
      // The head obeys sampling options that requests carry.
      {"runtime/model", {"kernels/ops", "runtime/store", "runtime/flow", "runtime/base"}},
      {"runtime/memory", {"kernels/ops", "runtime/base"}},
      {"runtime/store", {"runtime/base"}},
      {"runtime/flow", {"runtime/base"}},
      {"runtime/text", {"runtime/base"}},
      {"runtime/image", {"runtime/base"}},
      {"kernels/reference", {"kernels/ops"}},
      {"kernels/cpu", {"kernels/ops"}},
      {"kernels/plan", {"kernels/base"}},

      {"runtime/base", {"kernels/base"}},
      {"kernels/ops", {"kernels/base"}},

      {"kernels/base", {}},
      {"schemas", {}},
  };
  return table;
}

std::optional<std::string> component_of(const std::string& path, const layer_table& table) {
  for (std::size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    const std::string folder = path.substr(0, slash);
    if (table.count(folder) != 0) return folder;
  }
  return std::nullopt;
}

std::set<std::string> reachable(const std::string& component, const layer_table& table) {
  std::set<std::string> seen{component};
  std::vector<std::string> todo{component};
  while (!todo.empty()) {
    const auto entry = table.find(todo.back());
    todo.pop_back();
    if (entry == table.end()) continue;
    for (const std::string& next : entry->second) {
      if (seen.insert(next).second) todo.push_back(next);
    }
  }
  return seen;
}

std::vector<std::string> cyclic(const layer_table& table) {
  std::vector<std::string> found;
  for (const auto& [component, direct] : table) {
    for (const std::string& next : direct) {
      if (reachable(next, table).count(component) == 0) continue;
      found.push_back(component);
      break;
    }
  }
  return found;
}

}  // namespace cedar::architecture
