// The edges of the drafter, which hears of every step and answers the scheduler.
#include "topology/plan/internal/planner.hpp"

namespace cedar::topology::internal {

void planner::connect_drafter() {
  if (!drafter_) return;
  for (const std::uint32_t layer : config_.dspark.target_layers)
    connect(edge_kind::draft_taps, stage_of(layer), *drafter_, draft_taps_size(config_), 0, layer);
  connect(edge_kind::verdict, scheduler_, *drafter_, verdict_size());
  connect(edge_kind::draft_orders, scheduler_, *drafter_, draft_orders_size());
  connect(edge_kind::draft_answers, *drafter_, scheduler_, draft_answers_size());
}

}  // namespace cedar::topology::internal
