// Where a topology puts the tensors of a configuration: by unit, device and node.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"
#include "tools/cedar/inspect_summary.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::tools {

/// Tensors that the same units read, more than one: each has a copy.
struct replicated_tensors {
  std::vector<topology::unit_id> readers;
  std::vector<std::string> names;
  tensor_sums sums;  ///< of one copy
};

struct placement_inspection {
  topology::plan plan;
  std::vector<std::vector<topology::unit_id>> readers;  ///< of each tensor of the manifest
  std::vector<tensor_sums> by_unit;  ///< by unit id, copies included
  tensor_sums once;  ///< on exactly one unit, or in parts on several
  std::vector<replicated_tensors> replicas;
  std::vector<model::component_total> not_placed;  ///< no unit of the file reads them

  /// "encoder (front-cpu of front)".
  std::string place_of(topology::unit_id unit) const;
};

/// Plans the topology for the inspected configuration, whatever model the file names. Errors:
/// malformed: every mistake of the file, a line each.
result<placement_inspection> place(const std::filesystem::path& topology,
                                   const model::model_config& config,
                                   const std::vector<model::expected_tensor>& tensors);

}  // namespace cedar::tools
