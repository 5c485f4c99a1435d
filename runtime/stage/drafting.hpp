// A drafter that follows a pipeline: taps come as blocks, tokens are drawn like the head's.
//
// 1. For every step with requests that it follows: extend() with its taps, apply() with its
// verdict,
//    then run() for the requests that go on. Steps without any need not come.
// 2. A proposal is the noisy arg max of the drafted logits, with the request's options and the
// noise
//    of its position: what the head will draw if the logits are alike. Options come with the rows
//    from which a request is followed. One with penalties is followed from its first row on, at
//    least by its tokens: they count.
// Not thread-safe: one owner calls it.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "kernels/base/buffer.hpp"
#include "runtime/base/cache_bytes.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/stage/drafter_stage.hpp"
#include "runtime/stage/token_chooser.hpp"

namespace cedar::stage {

class drafting {
 public:
  /// `config` must outlive the object.
  drafting(std::unique_ptr<drafter_stage> drafter, const model::model_config& config)
      : config_(config), drafter_(std::move(drafter)) {}

  /// Whose taps it needs, ascending.
  std::span<const std::uint32_t> target_layers() const noexcept {
    return config_.dspark.target_layers;
  }

  /// Whether a step's taps have rows: otherwise it has no blocks of them.
  bool takes_taps(const flow::step_table& table) const noexcept {
    return std::ranges::any_of(
        table.spans, [this](const flow::row_span& span) { return tapped_rows(span, config_) > 0; });
  }
  /// `taps`: a draft_taps block of every target layer, in any order; others are ignored. Errors:
  /// malformed (a block is missing or does not fit the step), those of drafter_stage::extend and
  /// token_chooser::begin.
  result<void> extend(const flow::step_table& table, std::span<const flow::row_block> taps);
  /// Errors: those of drafter_stage::apply.
  result<void> apply(const flow::verdict& verdict);
  /// One draft for each order, in their order, of at most its tokens_max; an empty one for a
  /// request that a later verdict has freed. Errors: those of drafter_stage::run.
  result<std::vector<flow::draft>> run(std::span<const flow::draft_order> orders);
  /// Forgets every request (a new epoch begins).
  void clear();
  cache_bytes caches() const noexcept { return {0, 0, drafter_->ring_bytes()}; }

 private:
  result<kernels::matrix_buffer<kernels::bf16>> join(const flow::step_table& table,
                                                     std::span<const flow::row_block> taps) const;
  result<void> choose_like_the_head(const flow::step_table& table);

  const model::model_config& config_;
  std::unique_ptr<drafter_stage> drafter_;
  token_chooser chooser_{config_.eos_tokens};
};

}  // namespace cedar::stage
