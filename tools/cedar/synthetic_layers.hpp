// Layers of a model without a checkpoint: weights of ordinary numbers in memory, and a request
// whose caches are as full as a bench wants them.
//
// Dense weights exist once, whatever the layer: who measures one layer after another must see to it
// that nothing of them is still in a cache. Experts are all there, each in memory of its own.
// Layers before which an Engram module sits are not run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ops/backend.hpp"
#include "runtime/model/config.hpp"
#include "runtime/model/hyper_connection.hpp"
#include "runtime/model/rotary.hpp"
#include "runtime/model/schedule.hpp"
#include "runtime/model/weights.hpp"
#include "runtime/stage/layer_runner.hpp"
#include "runtime/stage/sequence_state.hpp"
#include "tools/cedar/bench_memory.hpp"

namespace cedar::tools {

/// Layers that cost the same: of one mode, over entries of one ratio.
struct layer_kind {
  std::string name;  ///< "Full, ratio 2"
  std::uint32_t layer = 0;  ///< the first of them without Engram
  std::uint32_t count = 0;  ///< of the model's layers, with Engram or without
};

class synthetic_layers {
 public:
  /// Of `config` with `experts` routed experts in a layer; caches for `positions_max` positions.
  synthetic_layers(model::model_config config, std::uint32_t experts, std::uint32_t positions_max);

  const model::model_config& config() const noexcept { return config_; }
  /// In the order of their first layers.
  std::vector<layer_kind> kinds() const;

  /// The request has `positions` positions now, with the global entries of owners that `backend`
  /// packed. Not fewer than before.
  result<void> fill(const kernels::backend& backend, std::uint32_t positions);
  std::uint32_t positions() const noexcept { return positions_; }
  /// Global entries that the next row sees in `layer`.
  std::uint32_t entries(std::uint32_t layer) const;

  /// Computes the next row of the request in `layer`, with the row's entry of an owner elsewhere
  /// and the choices of an index source elsewhere where the layer needs them, and forgets it again.
  /// Different rows in turn.
  result<void> run(const kernels::backend& backend, std::uint32_t layer);
  /// The next `rows` rows in a layer between others: it was begun by the one before, here by
  /// `before`, and it begins one after it. Caches have room for them.
  result<void> run_between(const kernels::backend& backend, const kernels::backend& before,
                           std::uint32_t layer, std::uint32_t rows);

  /// Bytes of weights, cache entries and index keys that run() has to read.
  double bytes_to_read(std::uint32_t layer) const;

 private:
  void make_dense();
  void make_experts();
  void make_selecting(std::uint32_t layer, model::layer_weights& weights);
  model::layer_weights weights_of(std::uint32_t layer);
  result<void> append_entries(std::uint32_t owner, std::uint32_t rows);
  std::vector<std::uint32_t> spread(std::uint32_t layer) const;
  kernels::candidate_pool spread_blocks(std::uint32_t layer) const;
  /// With `next`, the layer begins it when it ends.
  result<void> run_rows(const kernels::backend& backend, const kernels::backend& before,
                        std::uint32_t layer, std::uint32_t count,
                        const model::following_sublayer* next);
  /// `count` of the inputs, the next ones in turn.
  model::residual next_rows(std::uint32_t count);
  /// Keys that `layer` has to score.
  std::uint32_t keys_scored(std::uint32_t layer) const;

  model::model_config config_;
  model::schedule schedule_;
  model::rotary_frequencies rotary_;
  bench_memory memory_;
  model::layer_weights dense_;  ///< and all experts
  stage::kv_pools pools_;
  stage::sequence_state sequence_;
  kernels::arena scratch_;
  std::vector<model::layer_weights> layers_;  ///< by layer
  kernels::matrix_view<kernels::bf16> rows_;  ///< [n, s*d]: inputs in turn
  kernels::matrix_view<float> pre_;  ///< [1, s]: of every row
  kernels::matrix_view<std::byte> main_;  ///< packed entries that fill() appends in turn
  kernels::matrix_view<std::byte> keys_;
  std::size_t next_row_ = 0;
  std::uint32_t positions_ = 0;
};

}  // namespace cedar::tools
