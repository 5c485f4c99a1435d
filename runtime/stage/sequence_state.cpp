#include "runtime/stage/sequence_state.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"
#include "runtime/model/compressor.hpp"

namespace cedar::stage {

memory::kv_page_pool& pool_of_own(kv_pools& pools, std::span<const model::index_shard> indexers,
                                  std::uint32_t owner) noexcept {
  return std::ranges::count(indexers, owner, &model::index_shard::owner) > 0 ? pools.entries
                                                                             : pools.whole;
}

memory::kv_page_pool* pool_of_replica(kv_pools& pools, const model::shared_state& imports,
                                      std::uint32_t owner) noexcept {
  const bool entries = std::ranges::binary_search(imports.entries, owner);
  const bool keys = std::ranges::binary_search(imports.index_keys, owner);
  if (entries && keys) return &pools.whole;
  if (entries) return &pools.entries;
  return keys ? &pools.keys : nullptr;
}

sequence_state::sequence_state(const model::model_config& config, const model::schedule& schedule,
                               std::uint32_t first_layer, std::uint32_t last_layer,
                               const model::shared_state& imports, kv_pools& pools,
                               std::span<const std::uint32_t> tapped,
                               std::span<const model::index_shard> indexers) {
  const std::uint32_t slack = ring_slack(config);
  const std::size_t window_bytes =
      kernels::entry_bytes(model::window_entry_format, config.head_dim);
  const std::size_t pending_bytes = std::size_t{2} * config.head_dim * sizeof(float);
  for (std::uint32_t layer = first_layer; layer <= last_layer; ++layer) {
    windows_.emplace(layer, memory::position_ring(config.window + slack, window_bytes));
    const model::layer_schedule& entry = schedule[layer];
    if (entry.mode != model::layer_mode::full) continue;
    globals_.emplace(layer, memory::global_cache(pool_of_own(pools, indexers, layer)));
    ratios_.emplace(layer, entry.ratio);
    if (entry.ratio > 1)
      pending_.emplace(layer, memory::position_ring(entry.ratio - 1 + slack, pending_bytes));
  }
  for (const std::uint32_t layer : tapped)
    taps_.emplace(
        layer, memory::position_ring(config.window + slack, config.width * sizeof(kernels::bf16)));
  for (std::uint32_t owner = 0; owner < first_layer; ++owner)
    if (memory::kv_page_pool* pool = pool_of_replica(pools, imports, owner)) {
      globals_.emplace(owner, memory::global_cache(*pool));
      ratios_.emplace(owner, schedule[owner].ratio);
    }
}

sequence_state::sequence_state(const model::index_shard& shard, std::uint32_t ratio,
                               memory::kv_page_pool& keys)
    : shard_(shard) {
  globals_.emplace(shard.owner, memory::global_cache(keys));
  ratios_.emplace(shard.owner, ratio);
}

result<void> sequence_state::reserve(std::uint32_t positions) {
  for (auto& [owner, cache] : globals_)
    if (const result<void> reserved = cache.reserve(entries_of(owner, positions)); !reserved) {
      truncate(written_);
      return reserved;
    }
  return {};
}

std::size_t sequence_state::ring_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const auto* rings : {&windows_, &pending_})
    for (const auto& [layer, ring] : *rings) bytes += ring.bytes();
  return bytes;
}

void sequence_state::truncate(std::uint32_t positions) {
  written_ = std::min(written_, positions);
  const std::uint32_t kept = std::max(written_, stored_);
  for (auto& [owner, cache] : globals_) cache.truncate(entries_of(owner, kept));
}

result<void> sequence_state::adopt(const kept_prefix& prefix, std::uint32_t begin,
                                   std::uint32_t stored, std::uint32_t granule) {
  CEDAR_REQUIRE(written_ == 0 && stored <= prefix.positions(), "only a new sequence adopts");
  const std::uint32_t shared = stored / granule * granule;
  for (auto& [owner, cache] : globals_) {
    // Of a shard, whole granules do not fill whole pages.
    const std::uint32_t whole = entries_of(owner, shared) / cache.page_entries();
    if (const auto done = cache.share(prefix.global(owner), whole * cache.page_entries(),
                                      entries_of(owner, stored));
        !done) {
      for (auto& [other, begun] : globals_) begun.truncate(0);
      return done;
    }
  }
  written_ = committed_ = begin_ = begin;
  stored_ = stored;
  return {};
}

kept_prefix sequence_state::keep(std::uint32_t positions) && {
  CEDAR_REQUIRE(positions <= written_, "rows that are kept were written");
  for (auto& [owner, cache] : globals_) cache.truncate(entries_of(owner, positions));
  return {std::move(globals_), positions};
}

void sequence_state::commit(step_id step, std::uint32_t positions) {
  committed_ = positions;
  if (step == last_step_) truncate(positions);
}

}  // namespace cedar::stage
