#include "topology/plan/internal/expert_checks.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "topology/plan/internal/layer_checks.hpp"
#include "topology/plan/internal/texts.hpp"

namespace cedar::topology::internal {

namespace {

using ids = std::vector<std::uint32_t>;

ids ids_of(layer_range range) {
  ids out(range.layers_count());
  std::iota(out.begin(), out.end(), range.first);
  return out;
}

ids common(const ids& a, const ids& b) {
  ids out;
  std::ranges::set_intersection(a, b, std::back_inserter(out));
  return out;
}

void check_layers_of(const document& topology, const experts_entry& slice,
                     const model::model_config& config, std::vector<diagnostic>& out) {
  const auto [first, last] = slice.layers.value;
  if (last < config.layers) return;
  const ids lacking = ids_of({std::max(first, config.layers), last});
  out.push_back(topology.mistake(slice.layers.where,
                                 layers_text(lacking) + " of experts '" + slice.name.value + "' " +
                                     (lacking.size() == 1 ? "does" : "do") + " not exist",
                                 "the model has layers 0-" + std::to_string(config.layers - 1)));
}

void check_ids_of(const document& topology, const experts_entry& slice,
                  const model::model_config& config, std::vector<diagnostic>& out) {
  ids lacking;
  std::ranges::copy_if(slice.experts.value, std::back_inserter(lacking),
                       [&](std::uint32_t id) { return id >= config.routed_experts; });
  if (lacking.empty()) return;
  out.push_back(
      topology.mistake(slice.experts.where,
                       experts_text(lacking) + " of experts '" + slice.name.value + "' " +
                           (lacking.size() == 1 ? "does" : "do") + " not exist",
                       "the model has experts 0-" + std::to_string(config.routed_experts - 1)));
}

void check_overlap(const document& topology, const experts_entry& earlier,
                   const experts_entry& slice, const model::model_config& config,
                   std::vector<diagnostic>& out) {
  const layer_range a = earlier.layers.value;
  const layer_range b = slice.layers.value;
  const std::uint32_t first = std::max(a.first, b.first);
  const std::uint32_t last = std::min(a.last, b.last);
  const ids both = common(experts_of(earlier, config), experts_of(slice, config));
  if (first > last || both.empty()) return;
  out.push_back(topology.mistake(
      slice.experts.given ? slice.experts.where : slice.name.where,
      experts_text(both) + " of " + layers_text(layer_range{first, last}) + " of experts '" +
          slice.name.value + "' " + (both.size() == 1 ? "is" : "are") + " on experts '" +
          earlier.name.value + "' too",
      "an expert of a layer may be on one of them only; those on none stay with their stage"));
}

}  // namespace

ids experts_of(const experts_entry& slice, const model::model_config& config) {
  return slice.experts.given ? slice.experts.value : ids_of({0, config.routed_experts - 1});
}

void check_experts(const document& topology, const model::model_config& config,
                   std::vector<diagnostic>& out) {
  const auto& slices = topology.units.experts;
  const auto readable = [](const experts_entry& slice) {
    return !slice.layers.wrong && !slice.experts.wrong;
  };
  for (auto slice = slices.begin(); slice != slices.end(); ++slice) {
    if (!slice->layers.wrong) check_layers_of(topology, *slice, config, out);
    if (!slice->experts.wrong) check_ids_of(topology, *slice, config, out);
    if (!readable(*slice)) continue;
    for (auto earlier = slices.begin(); earlier != slice; ++earlier)
      if (readable(*earlier)) check_overlap(topology, *earlier, *slice, config, out);
  }
}

}  // namespace cedar::topology::internal
