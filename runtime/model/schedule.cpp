#include "runtime/model/schedule.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"

namespace cedar::model {
namespace {

/// The latest of `sources` (ascending) that is not after `layer`.
std::optional<std::uint32_t> latest(const std::vector<std::uint32_t>& sources,
                                    std::uint32_t layer) {
  const auto after = std::upper_bound(sources.begin(), sources.end(), layer);
  if (after == sources.begin()) return std::nullopt;
  return *std::prev(after);
}

std::optional<std::uint32_t> position_of(const std::vector<std::uint32_t>& list,
                                         std::uint32_t value) {
  const auto found = std::find(list.begin(), list.end(), value);
  if (found == list.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - list.begin());
}

layer_schedule schedule_of(const model_config& config, std::uint32_t layer) {
  layer_schedule entry;
  entry.ratio = config.compress_ratios.at(layer);
  entry.engram = position_of(config.engram.layers, layer);
  if (entry.ratio == 0) return entry;
  entry.owner = latest(config.kv_sources, layer);
  entry.index_source = latest(config.index_sources, layer);
  CEDAR_REQUIRE(entry.owner && entry.index_source, "a compressed layer without a source");
  entry.mode = *entry.owner == layer          ? layer_mode::full
               : *entry.index_source == layer ? layer_mode::reindex
                                              : layer_mode::reuse;
  if (config.candidate_source) {
    entry.makes_candidates = layer == *config.candidate_source;
    entry.uses_candidates = entry.index_source == layer && layer > *config.candidate_source;
  }
  return entry;
}

}  // namespace

std::string_view to_string(layer_mode mode) noexcept {
  switch (mode) {
    case layer_mode::window_only:
      return "window";
    case layer_mode::full:
      return "full";
    case layer_mode::reindex:
      return "reindex";
    case layer_mode::reuse:
      return "reuse";
  }
  return "?";
}

schedule::schedule(const model_config& config)
    : decoder_begin_(config.kv_sources.empty() ? config.layers : config.kv_sources.back()) {
  for (std::uint32_t layer = 0; layer < config.layers; ++layer)
    layers_.push_back(schedule_of(config, layer));
}

std::vector<std::uint32_t> schedule::readers(std::uint32_t owner) const {
  std::vector<std::uint32_t> found;
  for (std::uint32_t layer = 0; layer < layers(); ++layer)
    if (layers_[layer].owner == owner) found.push_back(layer);
  return found;
}

bool schedule::cut_is_free(std::uint32_t layer) const {
  CEDAR_REQUIRE(layer < layers(), "a cut lies after a layer of the model");
  // The owner alone decides: it is an index source itself, so it comes no later than the source of
  // a selection, and users of the candidate pool share their owner with the pool's source.
  return std::none_of(
      layers_.begin() + layer + 1, layers_.end(),
      [layer](const layer_schedule& after) { return after.owner && *after.owner <= layer; });
}

}  // namespace cedar::model
