// What a stage remembers of one request between steps.
//
// 1. `written` rows are visible to later rows; `committed` rows have been confirmed by a verdict.
// 2. truncate() takes back everything beyond a position: window rings and pending compressor rows
//    only move their length, global entries are dropped, pages return to the pool.
// 3. A request may begin with the global entries of a kept prefix (adopt()): its rows then begin
//    before the prefix ends, and those within it only bring windows back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "runtime/base/ids.hpp"
#include "runtime/memory/global_cache.hpp"
#include "runtime/memory/position_ring.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/index_shard.hpp"
#include "runtime/model/schedule.hpp"
#include "runtime/model/sharing.hpp"

namespace cedar::stage {

/// Rows of slack in every ring: a verdict may take back at most this many rows of a step.
inline std::uint32_t ring_slack(const model::model_config& config) noexcept {
  return config.dspark.block_size + 1;
}

/// Pages of a stage by what their entries hold. An owner's own entries, and replicas of main
/// entries with their keys, are `whole`; a replica that nobody scores against has no keys, nor have
/// own entries whose keys are with indexers; a replica whose main entries are gathered has only
/// keys.
struct kv_pools {
  memory::kv_page_pool whole;
  memory::kv_page_pool entries;
  memory::kv_page_pool keys;

  std::size_t pages_in_use() const noexcept {
    return whole.pages_in_use() + entries.pages_in_use() + keys.pages_in_use();
  }
  std::size_t pages_max() const noexcept {
    return whole.pages_max() + entries.pages_max() + keys.pages_max();
  }
  std::size_t bytes_in_use() const noexcept {
    return whole.bytes_in_use() + entries.bytes_in_use() + keys.bytes_in_use();
  }
};

/// Which pool of `pools` holds what a stage keeps of `owner`, one of its layers; and what it keeps
/// of another stage's, null: nothing.
memory::kv_page_pool& pool_of_own(kv_pools& pools, std::span<const model::index_shard> indexers,
                                  std::uint32_t owner) noexcept;
memory::kv_page_pool* pool_of_replica(kv_pools& pools, const model::shared_state& imports,
                                      std::uint32_t owner) noexcept;

/// Global KV of a request that is over, by owner: what later requests may begin with. Constant.
class kept_prefix {
 public:
  kept_prefix(std::map<std::uint32_t, memory::global_cache> globals, std::uint32_t positions)
      : globals_(std::move(globals)), positions_(positions) {}

  std::uint32_t positions() const noexcept { return positions_; }
  const memory::global_cache& global(std::uint32_t owner) const { return globals_.at(owner); }
  /// As global_cache::list_pages(), of all owners.
  void list_pages(std::map<const std::byte*, std::size_t>& to) const {
    for (const auto& [owner, cache] : globals_) cache.list_pages(to);
  }

 private:
  std::map<std::uint32_t, memory::global_cache> globals_;
  std::uint32_t positions_;
};

class sequence_state {
 public:
  /// For layers [first, last] of the model, with replicas of what `imports` brings, and rings for
  /// the taps of the layers `tapped`; owners of `indexers` have no keys.
  sequence_state(const model::model_config& config, const model::schedule& schedule,
                 std::uint32_t first_layer, std::uint32_t last_layer,
                 const model::shared_state& imports, kv_pools& pools,
                 std::span<const std::uint32_t> tapped = {},
                 std::span<const model::index_shard> indexers = {});
  /// For a shard of the index keys of an owner of this ratio.
  sequence_state(const model::index_shard& shard, std::uint32_t ratio, memory::kv_page_pool& keys);

  std::uint32_t written() const noexcept { return written_; }
  std::uint32_t committed() const noexcept { return committed_; }
  /// The first row; not 0 only after adopt().
  std::uint32_t begin() const noexcept { return begin_; }
  /// Positions whose global entries were adopted.
  std::uint32_t stored() const noexcept { return stored_; }

  /// Makes a new sequence begin at row `begin`, with the global entries of positions [0, stored) of
  /// `prefix`; those of whole granules of `granule` positions stay in the prefix's pages. `stored`:
  /// at most the prefix's positions. On errc::capacity nothing changed.
  result<void> adopt(const kept_prefix& prefix, std::uint32_t begin, std::uint32_t stored,
                     std::uint32_t granule);
  /// Gives the global entries of positions [0, positions) away; the sequence is over.
  kept_prefix keep(std::uint32_t positions) &&;

  /// Takes the pages that rows [0, positions) need, so that writing them cannot fail. On
  /// errc::capacity nothing changed.
  result<void> reserve(std::uint32_t positions);
  /// `step` has written rows up to `positions`.
  void write(step_id step, std::uint32_t positions) noexcept {
    last_step_ = step;
    written_ = positions;
  }
  /// The verdict on `step`: rows [0, positions) stand. Rows beyond are taken back, unless a later
  /// step has continued the request: the scheduler does that only after rows that cannot be
  /// rejected.
  void commit(step_id step, std::uint32_t positions);

  /// Window KV of a layer, packed rows by position.
  memory::position_ring& window(std::uint32_t layer) { return windows_.at(layer); }
  /// What a target layer of the drafter has for it, rows [d] bf16 by position: the drafter may ask
  /// for them later.
  memory::position_ring& taps(std::uint32_t layer) { return taps_.at(layer); }
  /// Global KV of an owner: its own, or the replica of what another stage sends.
  memory::global_cache& global(std::uint32_t owner) { return globals_.at(owner); }
  /// fp32 k and g (2 * head_dim floats a row) of tokens that wait for their group; owners of ratio
  /// >= 2.
  memory::position_ring& pending(std::uint32_t owner) { return pending_.at(owner); }

  /// Of windows and pending rows.
  std::size_t ring_bytes() const noexcept;

  /// Rows from `positions` on never happened, and pages reserved beyond them and beyond an adopted
  /// prefix are not needed.
  void truncate(std::uint32_t positions);

 private:
  /// What is here of the entries of positions [0, positions).
  std::uint32_t entries_of(std::uint32_t owner, std::uint32_t positions) const {
    const std::uint32_t entries = positions / ratios_.at(owner);
    return shard_ ? shard_->count(entries) : entries;
  }

  std::map<std::uint32_t, memory::position_ring> windows_;
  std::map<std::uint32_t, memory::position_ring> taps_;
  std::map<std::uint32_t, memory::global_cache> globals_;
  std::map<std::uint32_t, memory::position_ring> pending_;
  std::map<std::uint32_t, std::uint32_t> ratios_;  ///< of the owners in globals_
  std::optional<model::index_shard> shard_;  ///< of their entries only these are here
  step_id last_step_;
  std::uint32_t written_ = 0;
  std::uint32_t committed_ = 0;
  std::uint32_t begin_ = 0;
  std::uint32_t stored_ = 0;
};

}  // namespace cedar::stage
