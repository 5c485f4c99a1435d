// The drafter as a placed unit: its weights with the replicas of embedding and head, and the window
// state of every request that it drafts for.
//
// 1. Rows come by step, as taps of the backbone's rows that walk the decoder; they continue where a
//    request's rows end, or begin anew with its last window. A step that is refused changes
//    nothing. They are kept as they come: what a row costs is computed when a draft sees it.
// 2. State moves by verdicts: apply() commits, takes back, or frees, as in a layer_stage. Rows of
//    drafts that the backbone verifies are rows like others: what it rejects is taken back.
// 3. A draft is a function of the rows that stand. Its bits do not depend on the other requests of
//    the call, nor on the steps in which rows came.
// Which drafts are verified, and how many tokens of them, is the scheduler's business.
// Not thread-safe: one owner calls it.
#pragma once

#include <unordered_map>
#include <vector>

#include "kernels/ops/backend.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/model/drafter.hpp"
#include "runtime/model/rotary.hpp"
#include "runtime/model/taps.hpp"
#include "runtime/stage/drafter_sequence.hpp"

namespace cedar::stage {

/// Rows up to the span's end whose taps the drafter takes (flow::tap_use); of a long span as many
/// as its rings hold.
std::uint32_t tapped_rows(const flow::row_span& span, const model::model_config& config) noexcept;

/// Proposals for one request: tokens[i] would stand at position + 1 + i.
struct block_draft {
  request_id request;
  std::uint32_t position = 0;  ///< of the order
  std::vector<model::draft_token> tokens;  ///< [dspark.block_size]
};

class drafter_stage {
 public:
  /// backend, config and the weights' checkpoint must outlive the stage.
  drafter_stage(const kernels::backend& backend, const model::model_config& config,
                model::drafter_weights weights, std::uint32_t requests_max);

  /// Elements of a row of taps: one tap [d] of each of dspark.target_layers, ascending.
  std::size_t tap_width() const noexcept {
    return config_.dspark.target_layers.size() * config_.width;
  }

  /// Takes the taps of a step's rows: `taps` [sum of tapped_rows() over `spans`, tap_width()], in
  /// step order. A request begins at its span's decoder_begin, or anew with a window. Errors:
  /// malformed (taps that do not fit the spans, a request twice), mismatch (rows that do not
  /// continue the request's), capacity (too many requests).
  result<void> extend(step_id step, std::span<const flow::row_span> spans,
                      kernels::matrix_view<const kernels::bf16> taps);

  /// One draft for each order, in their order, whatever their tokens_max. `choose` gets the order's
  /// index as request number. Errors: mismatch (unknown request, rows up to another position),
  /// invalid_argument (a token outside the vocabulary).
  result<std::vector<block_draft>> run(std::span<const flow::draft_order> orders,
                                       const model::draft_choice& choose,
                                       const model::taps& probes = {});

  /// Commits, takes back, frees; unknown requests are ignored. A verdict comes after extend() of
  /// its step. Error mismatch: it did not, or takes back more rows than windows have slack for.
  result<void> apply(const flow::verdict& verdict);
  /// Forgets every request (a new epoch begins).
  void clear() { sequences_.clear(); }

  bool knows(request_id request) const { return sequences_.contains(request); }
  std::size_t sequences() const noexcept { return sequences_.size(); }
  /// Of all requests.
  std::size_t ring_bytes() const noexcept;

 private:
  result<void> check_spans(std::span<const flow::row_span> spans) const;
  result<void> check_orders(std::span<const flow::draft_order> orders) const;
  void make_entries(std::span<const flow::draft_order> orders, const model::taps& probes);
  model::context context(std::span<const std::int32_t> positions,
                         std::span<const std::uint8_t> image_rows, const model::taps& probes);
  kernels::matrix_view<const kernels::bf16> embed(std::span<const flow::draft_order> orders);
  std::span<const model::draft_context> windows(std::span<const flow::draft_order> orders,
                                                std::size_t block);

  const kernels::backend& backend_;
  const model::model_config& config_;
  model::drafter_weights weights_;
  std::uint32_t requests_max_;
  model::rotary_frequencies rotary_;
  kernels::arena scratch_;
  std::unordered_map<request_id, drafter_sequence> sequences_;
};

}  // namespace cedar::stage
