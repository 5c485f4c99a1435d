#include "topology/plan/internal/cuda_checks.hpp"
#include "topology/plan/internal/draft_checks.hpp"
#include "topology/plan/internal/engram_checks.hpp"
#include "topology/plan/internal/expert_checks.hpp"
#include "topology/plan/internal/indexer_checks.hpp"
#include "topology/plan/internal/layer_checks.hpp"
#include "topology/plan/internal/link_checks.hpp"
#include "topology/plan/internal/memory_checks.hpp"
#include "topology/plan/internal/name_checks.hpp"
#include "topology/plan/internal/planner.hpp"
#include "topology/plan/internal/split_checks.hpp"
#include "topology/plan/internal/thread_checks.hpp"
#include "topology/plan/internal/vision_checks.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology {

tl::expected<plan, std::vector<diagnostic>> make_plan(const document& topology,
                                                      const model::model_config& config) {
  return make_plan(reading{topology, {}}, config);
}

tl::expected<plan, std::vector<diagnostic>> make_plan(const reading& file,
                                                      const model::model_config& config) {
  const document& topology = file.value;
  std::vector<diagnostic> all = file.mistakes;
  internal::check_names(topology, all);
  internal::check_threads(topology, all);
  internal::check_cuda(topology, all);
  internal::check_model(topology, all);
  internal::check_addresses(topology, all);
  internal::check_joining(topology, all);
  internal::check_split_entries(topology, config, all);
  const bool layers_fit = internal::check_layers(topology, config, all);
  internal::check_engram(topology, config, all);
  internal::check_experts(topology, config, all);
  internal::check_indexers(topology, config, all);
  internal::check_mode(topology, all);
  internal::check_draft(topology, config, all);
  internal::check_vision(topology, config, all);
  internal::check_limits(topology, config, all);
  internal::check_transport(topology, all);
  internal::check_deadlines(topology, all);
  internal::check_links(topology, all);
  const bool all_but_cuts = all.empty();
  internal::check_cuts(topology, config, layers_fit, all);
  if (!all_but_cuts) {
    sort_by_position(all);
    return tl::unexpected(std::move(all));
  }
  // A split that is not named hides no lack of memory: it is planned for all the same.
  auto made = internal::planner(internal::with_missing_splits(topology, config), config).make();
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
