// Blocks between stages and the shards of their owners' index keys (flow::row_kind names them).
//
// A shard is asked about the rows of an index source that see an entry of it, which follows from
// the step's spans alone; it answers with the best of its entries for each, so that the best of all
// shards' are the best of all entries. Everything that arrives is checked before it is used.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/model/index_shard.hpp"
#include "runtime/model/indexer.hpp"
#include "runtime/stage/shared_blocks.hpp"

namespace cedar::stage {

/// A row of an index source that sees an entry of a shard.
struct asking_row {
  std::size_t row = 0;  ///< of those that the source works on
  request_id request;
  std::uint32_t visible = 0;  ///< entries of the owner that it sees
};
/// Of the source `layer`, in step order.
std::vector<asking_row> asking_rows(std::span<const flow::row_span> spans,
                                    const model::schedule& schedule, std::uint32_t layer,
                                    const model::index_shard& shard);

/// How many of a step's new entries a shard holds.
std::uint32_t new_keys_of(std::span<const flow::row_span> spans, const model::schedule& schedule,
                          const model::index_shard& shard);

/// The step's new index keys that a shard holds, of all new `keys` of its owner [entries, bytes],
/// span after span. Nothing if it holds none.
std::optional<flow::row_block> make_keys_block(const shared_context& c,
                                               const flow::step_table& table,
                                               const model::index_shard& shard,
                                               std::span<const std::byte> keys);
/// Keys of an index_keys block for a shard: [entries, bytes], span after span. Valid while the
/// block lives. Error malformed: not those that its spans complete.
result<kernels::matrix_view<const std::byte>> keys_of_shard(const flow::row_block& block,
                                                            const shared_context& c,
                                                            const model::index_shard& shard);

/// What is asked of a shard. Views are valid while the block lives.
struct index_questions {
  std::vector<asking_row> rows;
  kernels::matrix_view<const std::byte> queries;  ///< [rows * index heads, bytes]
  kernels::matrix_view<const kernels::bf16> weights;  ///< [rows, index heads]
  /// By row, if the source is restricted to candidates: its blocks that the shard holds.
  selection blocks;
};
/// Error malformed: not rows of an index source of the shard's owner that see entries of it, blocks
/// that do not ascend, do not exist or are other shards', weights that are no numbers.
result<index_questions> questions_of(const flow::row_block& block, const shared_context& c,
                                     const model::index_shard& shard);

/// A position or a block with its score.
struct scored_index {
  std::uint32_t index = 0;
  kernels::bf16 score;
};
/// What a shard found for one row, ascending.
struct index_findings {
  std::vector<scored_index> entries;
  std::vector<scored_index> blocks;  ///< for the candidate source only
};
/// The answer to `request`, which asked about as many rows.
flow::row_block make_choice_block(const shared_context& c, const flow::row_block& request,
                                  std::span<const index_findings> found);

/// What an index source chooses, while its step waits for the shards of its owner.
class awaited_choices {
 public:
  /// References that outlive it. `shards`: of several owners; `reader`: the stage's first layer.
  awaited_choices(const shared_context& c, std::span<const model::index_shard> shards,
                  std::uint32_t reader)
      : c_(c), shards_(shards), reader_(reader) {}

  /// Appends the questions of `layer` about rows with these queries. `pools`: its candidates, if it
  /// is restricted to them.
  void ask(const flow::step_table& table, std::uint32_t layer, const model::index_query& query,
           std::span<const kernels::candidate_pool> pools, std::vector<flow::row_block>& out);
  bool any() const noexcept { return !asked_.empty(); }

  /// Error malformed: not an answer to what is asked.
  result<void> take(const flow::row_block& answer);

  /// Once all have answered: writes what the layer chose, and its candidates if it makes them.
  void settle(step_selections& selections);

 private:
  struct question {
    const model::index_shard* shard;
    flow::row_block request;  ///< without its rows
    std::vector<asking_row> rows;
  };

  flow::row_block new_request(const flow::step_table& table, const model::index_shard& shard,
                              const model::index_query& query,
                              std::span<const kernels::candidate_pool> pools,
                              const std::vector<asking_row>& rows) const;
  std::optional<std::vector<index_findings>> findings_in(const flow::row_block& answer,
                                                         const question& asked) const;
  bool row_is_sound(const index_findings& found, const asking_row& row,
                    const model::index_shard& shard) const;

  shared_context c_;
  std::span<const model::index_shard> shards_;
  std::uint32_t reader_;
  std::uint32_t layer_ = 0;  ///< that asks
  std::span<const kernels::candidate_pool> pools_;  ///< that it is restricted to
  std::vector<question> asked_;
  std::vector<std::uint32_t> visible_;  ///< [n]
  std::vector<index_findings> found_;  ///< [n], of all shards that have answered
};

}  // namespace cedar::stage
