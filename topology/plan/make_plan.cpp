#include "topology/plan/internal/layer_checks.hpp"
#include "topology/plan/internal/memory_checks.hpp"
#include "topology/plan/internal/name_checks.hpp"
#include "topology/plan/internal/planner.hpp"
#include "topology/plan/internal/split_checks.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology {

tl::expected<plan, std::vector<diagnostic>> make_plan(const document& topology,
                                                      const model::model_config& config) {
  std::vector<diagnostic> all;
  internal::check_names(topology, all);
  internal::check_model(topology, config, all);
  internal::check_addresses(topology, all);
  internal::check_joining(topology, all);
  internal::check_split_entries(topology, config, all);
  if (internal::check_layers(topology, config, all)) internal::check_cuts(topology, config, all);
  internal::check_mode(topology, all);
  internal::check_limits(topology, config, all);
  internal::check_transport(topology, all);
  internal::check_deadlines(topology, all);
  if (!all.empty()) {
    sort_by_position(all);
    return tl::unexpected(std::move(all));
  }
  auto made = internal::planner(topology, config).make();
  if (!made)
    return tl::unexpected(std::vector{topology.mistake(topology.units.where, made.error())});
  internal::check_memory(topology, *made, all);
  if (!all.empty()) {
    sort_by_position(all);
    return tl::unexpected(std::move(all));
  }
  return std::move(*made);
}

}  // namespace cedar::topology
