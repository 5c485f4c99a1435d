// One layer at a time on recorded inputs: nothing accumulates, so bounds are tight.
//
// A trace holds the inputs and every intermediate of one prefill and one or two decode steps. For
// each layer the recorded streams go in; global KV, selections and candidates of other layers come
// from the trace.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/stage/layer_runner.hpp"
#include "runtime/stage/model_source.hpp"
#include "tests/golden/runtime/stage/deviation.hpp"
#include "tests/golden/runtime/stage/traced_calls.hpp"

namespace cedar::test {

/// A deliberate mistake: changes configuration or weights before the layers run.
struct mistake {
  std::string name;
  std::function<void(model::model_config&)> in_config = [](model::model_config&) {};
  std::function<void(model::layer_weights&)> in_weights = [](model::layer_weights&) {};
  bool all_candidates = false;  ///< the candidate pool is everything
  bool no_images = false;  ///< rows of image spans are taken for text
};

class layer_trace {
 public:
  /// `checkpoint`: folder below tests/data/golden, with one trace. Throws if it cannot be opened.
  layer_trace(const std::string& checkpoint, const kernels::backend& backend);

  const golden_file& trace() const noexcept { return trace_; }
  std::uint32_t layers() const { return source_->config().layers; }

  /// Runs prefill and all decode steps of one layer; deviations over all of them.
  layer_deviation run(std::uint32_t layer, const mistake& with = {}) const;

  /// The Engram module before `layer`: streams in, streams out; and the table rows that its tokens
  /// address, which must be the recorded ones (else wrong_choices), by content and by number. Zero
  /// if there is none.
  layer_deviation run_engram(std::uint32_t layer) const;

  /// What passes from the encoder's last layer to the decoder's first in mode bounded, as the
  /// traced prompt's file records it (h20.*): the one layer's rows from its recorded input; and
  /// what a stage that begins with the other makes of the recorded rows, most of which do not walk
  /// it.
  layer_deviation run_handover() const;

 private:
  struct setting;
  struct layer_rows {
    kernels::matrix_buffer<kernels::bf16> streams;
    kernels::matrix_buffer<float> pre;
  };

  layer_rows run_call(const setting& with, const traced_call& at, layer_deviation& out) const;
  void check_addresses(std::uint32_t layer, layer_deviation& out) const;
  void fill_owner(const setting& with, const traced_call& at) const;
  stage::selection_overrides recorded_choice(const setting& with, const traced_call& at) const;
  std::vector<kernels::candidate_pool> recorded_candidates(const setting& with,
                                                           const traced_call& at) const;
  void compare_window(const setting& with, const traced_call& at, layer_deviation& out) const;
  void compare_candidates(const setting& with, const traced_call& at,
                          std::span<const kernels::candidate_pool> pools,
                          layer_deviation& out) const;
  void compare_addresses(std::uint32_t layer, const traced_call& at, const flow::step_table& table,
                         layer_deviation& out) const;
  void hand_over(const golden_file& handed, layer_deviation& out) const;
  void take_over(const golden_file& handed, layer_deviation& out) const;
  void compare(std::uint32_t layer, const traced_call& at, const std::string& name,
               const model::tapped_tensor& actual, layer_deviation& out) const;

  const kernels::backend& backend_;
  std::unique_ptr<stage::model_source> source_;
  std::string checkpoint_;
  golden_file trace_;
  std::vector<traced_call> calls_;
};

}  // namespace cedar::test
