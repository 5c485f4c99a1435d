#include "topology/plan/internal/vision_checks.hpp"

#include <algorithm>

#include "topology/plan/message_size.hpp"

namespace cedar::topology::internal {

void check_vision(const document& topology, const model::model_config& config,
                  std::vector<diagnostic>& out) {
  const auto& vision = topology.units.vision;
  if (!vision) return;
  if (config.vision.layers == 0)
    out.push_back(topology.mistake(
        vision->where, "the model has no vision tower for 'units.vision' to run", "remove it"));
  else if (image_cells_max(config, topology.limits.context.value) == 0)
    out.push_back(topology.mistake(topology.limits.context.where,
                                   "'context' holds no image, but 'units.vision' is placed",
                                   "write at least 4, or remove 'units.vision'"));
}

}  // namespace cedar::topology::internal
