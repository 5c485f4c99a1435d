// A pipeline stage: contiguous layers, their weights, and the state of every request in them.
//
// 1. Steps arrive in the scheduler's order; a step's rows of a request continue where its written
//    rows end, in one span a request. Anything else is an error.
// 2. State moves by verdicts: apply() commits, takes back, or frees.
// 3. A failed step changes nothing: everything that can fail, pages included, is settled before the
//    first row is computed; what came from other stages and does not fit is taken back.
// 4. A cut through a Full/Reuse group: `imports` of other stages arrive with the step, `exports`
//    leave with its results; entries of a `gather` split are asked for while the step runs, which
//    suspends it. Steps do not overtake each other.
// 5. Routed experts that other units hold are asked, layer by layer, for what the rows chose: this
//    suspends the step too, after what is here has been computed meanwhile (go_on()).
// 6. Index keys of an owner that indexers hold are not here: new ones are sent to them, and its
// index
//    sources ask them what to choose.
// Not thread-safe: one owner (an actor, or the local engine) calls it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/ops/backend.hpp"
#include "runtime/base/cache_bytes.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/model/engram_shard.hpp"
#include "runtime/model/expert_slice.hpp"
#include "runtime/model/index_shard.hpp"
#include "runtime/model/rotary.hpp"
#include "runtime/model/schedule.hpp"
#include "runtime/model/sharing.hpp"
#include "runtime/model/taps.hpp"
#include "runtime/model/weights.hpp"
#include "runtime/stage/sequence_table.hpp"
#include "runtime/stage/stage_step.hpp"
#include "runtime/stage/step_join.hpp"
#include "runtime/stage/step_rows.hpp"

namespace cedar::stage {

struct layer_stage_options {
  std::uint32_t first_layer = 0;
  std::uint32_t last_layer = 0;  ///< inclusive
  std::uint32_t requests_max = 1;
  std::uint32_t context_max = 0;  ///< positions of one request
  model::shared_state imports{};  ///< what the layers need of earlier stages (model::shared_needs)
  model::shared_state exports{};  ///< what later stages need of the layers
  /// KV that all requests together may hold at once, in granules of memory::default_page_entries *
  /// model::ratios_lcm positions (the scheduler's session::kv_budget). None: what the requests
  /// need.
  std::optional<std::uint64_t> kv_granules{};
  /// Granules that kept prefixes may hold after their requests; within kv_granules.
  std::uint64_t prefix_granules = 0;
  /// Target layers of the stage, ascending, whose taps go to the drafter.
  std::vector<std::uint32_t> tapped_layers{};
  /// Slices of the layers' routed experts that other units hold. Their weights are not needed here.
  std::vector<model::expert_slice> experts_elsewhere{};
  /// Shards of the index keys of owners, all of an owner's or none: of its layers, and of those
  /// that its index sources choose from.
  std::vector<model::index_shard> indexers{};
  /// Parts that the tables of the layers' Engram modules come in; a module without: in one.
  std::vector<model::engram_shard> engram_shards{};
};

/// Pages whose entries have main entries, or index keys, or both.
memory::page_layout page_layout_of(const model::model_config& config, bool entries, bool keys);

/// Pages of a stage, by pool.
struct page_counts {
  std::size_t whole = 0;
  std::size_t entries = 0;
  std::size_t keys = 0;

  std::size_t total() const noexcept { return whole + entries + keys; }
};

/// Pages that `requests_max` requests of `context_max` positions and the kept prefixes need in the
/// stage's layers and replicas, or fewer if `kv_granules` allows no more: a request of n positions
/// holds ceil(n / granule) of them, and each is lcm / ratio whole pages at an owner.
page_counts pages_needed(const model::schedule& schedule, const layer_stage_options& options);

class layer_stage {
 public:
  /// `layers` [last - first + 1]; backend, config and schedule must outlive the stage.
  layer_stage(const kernels::backend& backend, const model::model_config& config,
              const model::schedule& schedule, std::vector<model::layer_weights> layers,
              const layer_stage_options& options);

  /// Begins a step: frees the prefixes that it drops, and gives requests that begin with others
  /// those pages. Its rows are `embedded` for a stage that begins with layer 0, else
  /// `activation`; it has the blocks of engram_inputs() and shared_inputs(). Returns the blocks to be
  /// sent: exports, taps, and last `activation` (`head_input` of wanted rows if the stage ends the
  /// model), or a `gather_request`, `expert_rows` or queries, which suspend the step. Errors:
  /// malformed (blocks that do not fit the step, a request twice), capacity (no free page, too many
  /// requests, beyond the context), mismatch (rows that do not continue the request's state, a
  /// prefix that is unknown here or shorter). Defect: another step is suspended.
  result<std::vector<flow::row_block>> begin(joined_step step, const model::taps& probes,
                                             const selection_overrides& overrides = {});
  /// Goes on with the suspended step, as far as this answer allows; returns what begin() does, or
  /// nothing if it waits for more. Error malformed: none is suspended, or not what it asked for.
  result<std::vector<flow::row_block>> resume(const flow::row_block& answer,
                                              const model::taps& probes);
  /// The suspended step can compute without an answer, once its requests have left.
  bool can_go_on() const noexcept { return step_ && step_->can_advance(); }
  /// Does so; returns what begin() does. Requires: can_go_on().
  result<std::vector<flow::row_block>> go_on(const model::taps& probes);
  bool suspended() const noexcept { return step_ != nullptr; }
  /// The step that is suspended, if one is.
  const flow::step_table* suspended_table() const noexcept {
    return step_ ? &step_->table() : nullptr;
  }

  /// The main entries that another stage asks for. Errors: malformed, mismatch (a request that is
  /// unknown here, positions not written).
  result<flow::row_block> answer(const flow::row_block& request);

  /// begin() for a stage that imports nothing and has all its experts: the last block.
  result<flow::row_block> run(const flow::step_table& table, const flow::row_block& input,
                              std::span<const flow::row_block> engram, const model::taps& probes,
                              const selection_overrides& overrides = {});

  /// Commits, takes back, frees, keeps. Unknown requests are ignored: their step may have failed
  /// earlier. Error mismatch: it frees a request whose rows are being computed, or keeps rows that
  /// were never written.
  result<void> apply(const flow::verdict& verdict);

  /// Forgets every request (a new epoch begins).
  void clear() {
    step_.reset();
    sequences_.clear();
  }

  /// Layers of the stage whose Engram rows a step has.
  std::vector<std::uint32_t> engram_layers() const;
  /// The blocks that they come in.
  std::vector<shared_input> engram_inputs() const;
  /// The blocks of other stages that a step has, besides rows and Engram.
  std::vector<shared_input> shared_inputs() const;

  std::uint32_t first_layer() const noexcept { return options_.first_layer; }
  std::uint32_t last_layer() const noexcept { return options_.last_layer; }
  const kv_pools& pages() const noexcept { return pools_; }
  cache_bytes caches() const noexcept;
  std::size_t sequences() const noexcept { return sequences_.sequences(); }
  std::size_t prefixes() const noexcept { return sequences_.prefixes(); }

 private:
  result<void> join_engram(joined_step& step) const;
  result<void> check_inputs(const joined_step& step) const;
  sequence_state new_sequence();
  result<step_rows> open_rows(const joined_step& step);
  result<void> import_shared(const joined_step& step, const step_rows& rows);
  result<std::vector<flow::row_block>> advance(const model::taps& probes);

  const kernels::backend& backend_;
  const model::model_config& config_;
  const model::schedule& schedule_;
  std::vector<model::layer_weights> layers_;
  layer_stage_options options_;
  model::rotary_frequencies rotary_;
  kv_pools pools_;
  kernels::arena scratch_;
  /// Of the step at hand. Kept for its memory: every source's choice is written before it is read.
  step_selections selections_;
  sequence_table sequences_;
  std::unique_ptr<stage_step> step_;  ///< null: none is suspended
};

}  // namespace cedar::stage
