#include "runtime/model/sharing.hpp"

#include <algorithm>
#include <iterator>

namespace cedar::model {

namespace {

using layer_set = std::set<std::uint32_t>;

std::vector<std::uint32_t> listed(const layer_set& layers) {
  return {layers.begin(), layers.end()};
}

/// Applies `change(list of a, list of b) -> list` to every kind.
template <class Change>
shared_state by_kind(const shared_state& a, const shared_state& b, const Change& change) {
  return {change(a.entries, b.entries), change(a.gathered, b.gathered),
          change(a.index_keys, b.index_keys), change(a.selections, b.selections),
          change(a.candidates, b.candidates)};
}

}  // namespace

shared_state shared_needs(const schedule& schedule, const model_config& config, std::uint32_t first,
                          std::uint32_t last, const std::set<std::uint32_t>& gather_owners,
                          const std::set<std::uint32_t>& sharded_owners) {
  layer_set entries, gathered, index_keys, selections, candidates;
  for (std::uint32_t layer = first; layer <= last; ++layer) {
    const layer_schedule& entry = schedule[layer];
    if (entry.owner && *entry.owner < first)
      (gather_owners.contains(*entry.owner) ? gathered : entries).insert(*entry.owner);
    const bool selects = entry.index_source == layer;
    if (selects && *entry.owner < first && !sharded_owners.contains(*entry.owner))
      index_keys.insert(*entry.owner);
    if (entry.index_source && *entry.index_source < first) selections.insert(*entry.index_source);
    if (entry.uses_candidates && *config.candidate_source < first)
      candidates.insert(*config.candidate_source);
  }
  return {listed(entries), listed(gathered), listed(index_keys), listed(selections),
          listed(candidates)};
}

shared_state made_by(const shared_state& state, std::uint32_t first, std::uint32_t last) {
  return by_kind(state, state, [&](const auto& layers, const auto&) {
    std::vector<std::uint32_t> out;
    std::ranges::copy_if(layers, std::back_inserter(out),
                         [&](std::uint32_t layer) { return layer >= first && layer <= last; });
    return out;
  });
}

shared_state merged(const shared_state& a, const shared_state& b) {
  return by_kind(a, b, [](const auto& left, const auto& right) {
    std::vector<std::uint32_t> out;
    std::ranges::set_union(left, right, std::back_inserter(out));
    return out;
  });
}

std::vector<std::uint32_t> split_owners(const schedule& schedule, std::uint32_t layer) {
  layer_set owners;
  for (std::uint32_t after = layer + 1; after < schedule.layers(); ++after)
    if (schedule[after].owner && *schedule[after].owner <= layer)
      owners.insert(*schedule[after].owner);
  return listed(owners);
}

std::uint32_t selected_count(const model_config& config, const layer_schedule& layer,
                             std::uint32_t position) {
  const std::uint32_t visible = (position + 1) / layer.ratio;
  if (!layer.uses_candidates) return std::min(config.index_topk, visible);
  // Blocks outside the pool are full ones: the newest block, the only one that may be partial, is
  // inside.
  const std::uint32_t blocks =
      (visible + config.candidate_block_size - 1) / config.candidate_block_size;
  const std::uint32_t outside = blocks - std::min(config.candidate_blocks, blocks);
  return std::min(config.index_topk, visible - outside * config.candidate_block_size);
}

}  // namespace cedar::model
