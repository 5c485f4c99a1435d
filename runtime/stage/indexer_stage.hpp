// A shard of the index keys of one owner, placed apart from the owner's stage.
//
// 1. It holds, of every request, the keys of its blocks of entries (model::index_shard), and
// follows
//    steps and verdicts as the replicas of a stage do: rows are written, committed, taken back,
//    kept, dropped.
// 2. What it answers follows from what is asked and its keys alone. Rows see entries up to their
// own
//    position, so keys of later steps change nothing.
// Not thread-safe: one owner (an actor) calls it.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/base/arena.hpp"
#include "kernels/ops/backend.hpp"
#include "runtime/base/cache_bytes.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/memory/kv_page_pool.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/index_shard.hpp"
#include "runtime/model/schedule.hpp"
#include "runtime/stage/index_blocks.hpp"
#include "runtime/stage/sequence_table.hpp"

namespace cedar::stage {

struct indexer_options {
  model::index_shard shard;
  std::uint32_t requests_max = 1;
  std::uint32_t context_max = 0;  ///< positions of one request
  /// As layer_stage_options has them.
  std::optional<std::uint64_t> kv_granules{};
  std::uint64_t prefix_granules = 0;
};

/// Pages of keys that the shard needs at most: what its part of the requests takes, or of the
/// budget; a request or a prefix has up to a block more than its part, and pages that are not full.
std::size_t key_pages_needed(const model::schedule& schedule, const indexer_options& options);

class indexer_stage {
 public:
  /// Backend, config and schedule must outlive the stage.
  indexer_stage(const kernels::backend& backend, const model::model_config& config,
                const model::schedule& schedule, const indexer_options& options);
  indexer_stage(const indexer_stage&) = delete;
  indexer_stage& operator=(const indexer_stage&) = delete;

  const model::index_shard& shard() const noexcept { return options_.shard; }
  /// Whether a step brings keys.
  bool takes_keys(const flow::step_table& table) const {
    return new_keys_of(table.spans, schedule_, options_.shard) > 0;
  }

  /// Takes the keys of a step, if it brings any. Frees the prefixes that it drops. Errors: those of
  /// sequence_table::check(), malformed (keys that are not those of the step), capacity; then
  /// nothing of the step is kept.
  result<void> extend(const flow::step_table& table, const flow::row_block* keys);
  /// What is best here for the rows of a query. Errors: malformed, mismatch (a request that is
  /// unknown here, entries that are not written).
  result<flow::row_block> answer(const flow::row_block& request);
  /// As sequence_table::apply().
  result<void> apply(const flow::verdict& verdict) { return sequences_.apply(verdict); }

  /// Forgets every request (a new epoch begins).
  void clear() { sequences_.clear(); }

  cache_bytes caches() const noexcept { return {pool_.bytes_in_use(), sequences_.kept_bytes(), 0}; }
  const memory::kv_page_pool& pages() const noexcept { return pool_; }
  std::size_t sequences() const noexcept { return sequences_.sequences(); }

 private:
  result<void> append(const flow::step_table& table, kernels::matrix_view<const std::byte> keys);
  index_findings find(const flow::row_block& request, const index_questions& asked, std::size_t row,
                      const memory::global_cache& cache);
  void choose_blocks(std::span<const kernels::bf16> scores, index_findings& out) const;

  const kernels::backend& backend_;
  const model::model_config& config_;
  const model::schedule& schedule_;
  indexer_options options_;
  memory::kv_page_pool pool_;
  kernels::arena scratch_;
  sequence_table sequences_;
};

}  // namespace cedar::stage
