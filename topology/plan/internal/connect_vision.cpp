// The edges of vision: images in, their embeddings out, and what tells when which are needed.
#include "topology/plan/internal/planner.hpp"

namespace cedar::topology::internal {

namespace {

// Enough messages to keep the edge busy, memory for two of the largest images.
constexpr std::uint32_t image_window_messages = 16;
constexpr std::uint64_t image_window_largest = 2;

}  // namespace

void planner::connect_vision() {
  if (!vision_) return;
  const limits_plan& limits = plan_.limits_;
  edge_plan edge = new_edge(edge_kind::image, scheduler_, *vision_);
  edge.message_bytes_max = image_cells_max(config_, limits.context) * cell_bytes(config_);
  edge.step_bytes_max =
      step_cells_max(config_, limits.rows_per_step, limits.requests, limits.context) *
      cell_bytes(config_);
  edge.window_messages = std::max(image_window_messages, limits.steps_in_flight);
  edge.window_bytes = image_window_largest * edge.message_bytes_max;
  // Of one step: none begins while one waits.
  edge.queue_messages_max = limits.rows_per_step;
  plan_.edges_.push_back(std::move(edge));
  connect(edge_kind::verdict, scheduler_, *vision_, verdict_size());
  connect(edge_kind::image_rows, *vision_, embedding_, image_rows_size(config_));
}

}  // namespace cedar::topology::internal
