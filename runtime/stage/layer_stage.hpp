// A pipeline stage: contiguous layers, their weights, and the state of every request in them.
//
// 1. Steps arrive in the scheduler's order; a step's rows of a request continue where its written
//    rows end, in one span a request. Anything else is an error.
// 2. State moves by verdicts: apply() commits, takes back, or frees.
// 3. A failed step changes nothing: everything that can fail, pages included, is settled before the
//    first row is computed.
// Not thread-safe: one owner (an actor, or the local engine) calls it.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "kernels/ops/backend.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/memory/kv_page_pool.hpp"
#include "runtime/model/hyper_connection.hpp"
#include "runtime/model/rotary.hpp"
#include "runtime/model/schedule.hpp"
#include "runtime/model/taps.hpp"
#include "runtime/model/weights.hpp"
#include "runtime/stage/row_layout.hpp"
#include "runtime/stage/sequence_state.hpp"
#include "runtime/stage/step_rows.hpp"

namespace cedar::stage {

struct layer_stage_options {
  std::uint32_t first_layer = 0;
  std::uint32_t last_layer = 0;  ///< inclusive
  std::uint32_t requests_max = 1;
  std::uint32_t context_max = 0;  ///< positions of one request
};

/// Pages that `requests_max` requests of `context_max` positions need in the stage's layers.
std::size_t pages_needed(const model::model_config& config, const model::schedule& schedule,
                         const layer_stage_options& options);

class layer_stage {
 public:
  /// `layers` [last - first + 1]; backend, config and schedule must outlive the stage.
  layer_stage(const kernels::backend& backend, const model::model_config& config,
              const model::schedule& schedule, std::vector<model::layer_weights> layers,
              const layer_stage_options& options);

  /// Runs one step. `input` is `embedded` for a stage that begins with layer 0, else `activation`;
  /// `engram` has a block for every layer of the stage that has a module. Returns `activation`, or
  /// `head_input` (wanted rows only) if the stage ends with the model's last layer.
  /// Errors: malformed (blocks that do not fit the step, a request twice), capacity (no free page,
  /// too many requests, beyond the context), mismatch (rows that do not continue the request's
  /// state).
  result<flow::row_block> run(const flow::step_table& table, const flow::row_block& input,
                              std::span<const flow::row_block> engram, const model::taps& probes,
                              const selection_overrides& overrides = {});

  /// Commits, takes back, frees. Unknown requests are ignored: their step may have failed earlier.
  void apply(const flow::verdict& verdict);

  /// Forgets every request (a new epoch begins).
  void clear() { sequences_.clear(); }

  /// Layers of the stage whose Engram rows run() wants.
  std::vector<std::uint32_t> engram_layers() const;

  std::uint32_t first_layer() const noexcept { return options_.first_layer; }
  std::uint32_t last_layer() const noexcept { return options_.last_layer; }
  const memory::kv_page_pool& pages() const noexcept { return pool_; }
  std::size_t sequences() const noexcept { return sequences_.size(); }

 private:
  result<void> check_inputs(const flow::step_table& table, const flow::row_block& input,
                            std::span<const flow::row_block> engram) const;
  result<void> check_spans(const flow::step_table& table) const;
  result<void> check_span(const flow::row_span& span) const;
  result<step_rows> open_rows(const flow::step_table& table, const row_planes_view& input,
                              std::span<const flow::row_block> engram);
  void take_back(const flow::step_table& table);
  model::residual first_residual(const row_planes_view& input, flow::row_kind kind);
  result<void> run_layers(const model::context& c, const step_rows& rows,
                          const selection_overrides& overrides, const model::residual& in,
                          const model::residual_out& out) const;
  flow::row_block collapse_wanted(const model::context& c, const flow::step_table& table,
                                  const model::residual& final_rows) const;
  bool ends_model() const noexcept { return options_.last_layer + 1 == config_.layers; }

  const kernels::backend& backend_;
  const model::model_config& config_;
  const model::schedule& schedule_;
  std::vector<model::layer_weights> layers_;
  layer_stage_options options_;
  model::rotary_frequencies rotary_;
  memory::kv_page_pool pool_;
  kernels::arena scratch_;
  std::unordered_map<request_id, sequence_state> sequences_;
};

}  // namespace cedar::stage
