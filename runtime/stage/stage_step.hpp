// One step on its way through the layers of a stage.
//
// The walk stops where it needs main entries that an owner elsewhere keeps (`gather`), outputs of
// experts that another unit holds, or choices of indexers, and goes on when they have come; nothing
// blocks meanwhile.
// Rows for experts elsewhere leave before those here are run. In mode `bounded` it narrows at the
// decoder's first layer: that layer creates global entries from all rows, then only the rows that
// walk the decoder go on.
#pragma once

#include <optional>
#include <vector>

#include "kernels/ops/backend.hpp"
#include "runtime/model/expert_slice.hpp"
#include "runtime/model/hyper_connection.hpp"
#include "runtime/model/index_shard.hpp"
#include "runtime/model/rotary.hpp"
#include "runtime/model/sharing.hpp"
#include "runtime/model/weights.hpp"
#include "runtime/stage/expert_blocks.hpp"
#include "runtime/stage/index_blocks.hpp"
#include "runtime/stage/layer_runner.hpp"
#include "runtime/stage/step_join.hpp"
#include "runtime/stage/step_rows.hpp"

namespace cedar::stage {

/// What a step needs of its stage. References that outlive the step.
struct stage_parts {
  const kernels::backend& backend;
  const model::model_config& config;
  const model::schedule& schedule;
  const model::rotary_frequencies& rotary;
  const std::vector<model::layer_weights>& layers;  ///< [last_layer - first_layer + 1]
  std::uint32_t first_layer;
  std::uint32_t last_layer;
  const model::shared_state& imports;
  const model::shared_state& exports;
  const std::vector<std::uint32_t>& tapped_layers;
  const std::vector<model::expert_slice>& experts_elsewhere;
  const std::vector<model::index_shard>& indexers;
};

class stage_step {
 public:
  /// `inputs` fit the stage (layer_stage checks them); `rows` are all rows of the step with their
  /// state, whose pages are reserved and whose replicas hold the step's entries. `scratch` was
  /// reset and is, like `selections`, the step's until it ends; of those, what other stages chose
  /// is there.
  stage_step(const stage_parts& parts, kernels::arena& scratch, joined_step inputs, step_rows rows,
             step_selections& selections, const selection_overrides& overrides);
  stage_step(const stage_step&) = delete;
  stage_step& operator=(const stage_step&) = delete;

  const flow::step_table& table() const noexcept { return inputs_.table; }
  const step_rows& rows() const noexcept { return all_; }
  bool done() const noexcept { return done_; }
  /// Something can be computed before an answer comes, or nothing is waited for.
  bool can_advance() const noexcept {
    return !done_ && !waits_for_entries() && (!awaited_experts_.any() || !experts_here_done_);
  }

  /// Computes until the step is done, waits, or has requests to send before it computes on. Appends
  /// the blocks to be sent: shared state as it is made; last the requests that are waited for, or
  /// `activation` or `head_input`. Requires: can_advance().
  result<void> advance(const model::taps& probes, std::vector<flow::row_block>& out);

  /// An answer to a request; advance() goes on if can_advance() then. Error malformed: not what was
  /// asked for.
  result<void> give(const flow::row_block& answer);

 private:
  model::context context(const model::taps& probes) const;
  const model::layer_weights& weights_of(std::uint32_t layer) const {
    return parts_.layers[layer - parts_.first_layer];
  }
  layer_runner runner() const;
  const step_rows& active() const noexcept { return narrowed_ ? decoder_ : all_; }
  bool ends_model() const noexcept { return parts_.last_layer + 1 == parts_.config.layers; }
  /// True if not all rows walk the decoder.
  bool narrows() const { return table().decoder_count() != table().rows_count(); }
  bool in_decoder(std::uint32_t layer) const noexcept {
    return layer >= parts_.schedule.decoder_begin();
  }

  void open(const flow::row_block& block);
  model::residual_out rows_of_output(std::size_t rows);
  void narrow_rows();
  result<void> enter_decoder(const model::taps& probes);
  bool keys_elsewhere(std::uint32_t layer) const;
  /// For entries, or for the choice of them.
  bool waits_for_entries() const noexcept { return waits_for_ || awaited_choices_.any(); }
  void send_entries(std::vector<flow::row_block>& out) const;
  void send_choices(std::vector<flow::row_block>& out) const;
  void make_taps(const model::taps& probes, std::vector<flow::row_block>& out) const;
  void send_taps(std::vector<flow::row_block>& out) const;
  void take_frames();
  bool next_layer_follows() const;
  bool needs_gather() const;
  void request_entries(std::vector<flow::row_block>& out);
  result<void> give_entries(const flow::row_block& gathered);
  result<void> begin_attention(const model::taps& probes, std::vector<flow::row_block>& out);
  void end_choice(const model::taps& probes, std::vector<flow::row_block>& out);
  result<void> attend(const model::taps& probes, std::vector<flow::row_block>& out);
  void open_moe(const model::taps& probes, std::vector<flow::row_block>& out);
  void close_moe(const model::taps& probes);
  result<void> run_layer(const model::taps& probes, std::vector<flow::row_block>& out);
  flow::row_block finish(const model::taps& probes);

  stage_parts parts_;
  kernels::arena& scratch_;
  joined_step inputs_;
  selection_overrides overrides_;
  step_rows all_;
  step_rows decoder_;  ///< filled when narrowed_
  step_selections& selections_;
  bool narrowed_ = false;
  bool done_ = false;
  std::uint32_t layer_;
  model::residual current_;
  model::sublayer_frame attention_frame_;
  model::sublayer_frame moe_frame_;
  bool attention_begun_ = false;  ///< of layer_, by the layer before
  model::residual_out output_;
  kernels::buffer memory_;  ///< of the block to be sent on
  bool global_made_ = false;  ///< at the decoder's first layer, by enter_decoder()
  std::optional<kernels::arena::mark> half_scope_;
  std::optional<attention_half> half_;
  bool chosen_ = false;  ///< the entries of half_
  awaited_choices awaited_choices_;
  std::optional<std::uint32_t> waits_for_;  ///< the owner whose entries are asked for
  std::optional<kernels::arena::mark> moe_scope_;
  std::optional<model::opened_moe> moe_;
  bool experts_here_done_ = false;  ///< of moe_
  awaited_experts awaited_experts_;
};

}  // namespace cedar::stage
