// The drafter on recorded inputs: taps, context, every block alone, and whole drafts.
//
// A trace holds the target layers' inputs of a prefill and the decode steps after it, and every
// intermediate of the draft after each of those.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/model/drafter.hpp"
#include "runtime/stage/model_source.hpp"
#include "tests/golden/runtime/stage/layer_trace.hpp"

namespace cedar::test {

/// A deliberate mistake: changes configuration or weights, or what the rows of a block see.
struct draft_mistake {
  std::string name;
  std::function<void(model::model_config&)> in_config = [](model::model_config&) {};
  std::function<void(model::drafter_weights&)> in_weights = [](model::drafter_weights&) {};
  std::uint32_t rows_too_early = 0;  ///< a block's context ends this many rows before the newest
  bool in_the_blocks = false;  ///< a block alone must show it
  bool in_the_draft = false;  ///< a whole draft must show it
};

class drafter_trace {
 public:
  /// `checkpoint`: folder below tests/data/golden. Throws if it cannot be opened.
  drafter_trace(const std::string& checkpoint, const kernels::backend& backend);

  std::uint32_t blocks() const { return config().dspark.blocks; }
  const golden_file& trace() const noexcept { return trace_; }
  /// Tokens of all recorded drafts.
  std::size_t drafted_tokens() const { return moments().size() * config().dspark.block_size; }

  /// Taps of the recorded streams, and M of the recorded taps.
  layer_deviation run_context() const;
  /// One block after each decode step, from its recorded input.
  layer_deviation run_block(std::uint32_t block, const draft_mistake& with = {}) const;

  /// Whole drafts by a drafter_stage that got the recorded taps; the chain is forced to the
  /// recorded tokens, so that its rows are comparable.
  struct draft_deviation {
    double logits_rms_mean = 0;
    double logits_max = 0;
    double confidence_max = 0;  ///< before the sigmoid
    std::size_t wrong_tokens = 0;
    std::size_t tokens = 0;
    std::set<std::string> compared;  ///< names in the trace
  };
  draft_deviation run_drafts(const draft_mistake& with = {}) const;

 private:
  /// The decode step after which a draft was made.
  struct moment {
    std::string prefix;  ///< "decode0."
    std::uint32_t rows = 0;  ///< backbone rows before the draft's first
  };

  const model::model_config& config() const { return source_->config(); }
  std::vector<moment> moments() const;
  /// Recorded taps of rows [0, rows): [rows, targets * d].
  kernels::matrix_buffer<kernels::bf16> taps_until(std::uint32_t rows) const;
  void compare(const std::string& recorded, const std::string& name,
               const model::tapped_tensor& actual, layer_deviation& out) const;

  const kernels::backend& backend_;
  std::unique_ptr<stage::model_source> source_;
  golden_file trace_;
  std::vector<traced_call> calls_;
};

}  // namespace cedar::test
