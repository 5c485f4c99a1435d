// Turns a document that passed all checks into a plan. The only maker of plans.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "runtime/model/config.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology::internal {

class planner {
 public:
  /// Both outlive the planner. Requires: the checks of name_checks.hpp and layer_checks.hpp found
  /// nothing.
  planner(const document& topology, const model::model_config& config)
      : document_(topology), config_(config) {}

  /// Error: why the credit graph could deadlock.
  tl::expected<plan, std::string> make();

 private:
  void place_nodes_and_devices();
  void place_units();
  void place_bounds();
  void connect_units();

  unit_id add_unit(std::string name, node_id node, std::optional<device_id> device, unit_role role);
  unit_id add_unit(std::string name, const std::string& device, unit_role role);
  /// Adds an edge of ordinary messages; `extra_bytes` on top of the size is what diagnostics may
  /// add.
  void connect(edge_kind kind, unit_id producer, unit_id consumer, const message_size& size,
               std::uint64_t extra_bytes = 0, std::uint32_t layer = 0);
  void connect_taps(unit_id producer);
  edge_plan new_edge(edge_kind kind, unit_id producer, unit_id consumer) const;

  const document& document_;
  const model::model_config& config_;
  plan plan_;
  unit_id scheduler_;
  unit_id embedding_;
  std::optional<unit_id> engram_;
  std::vector<unit_id> stages_;
  unit_id head_;
};

}  // namespace cedar::topology::internal
