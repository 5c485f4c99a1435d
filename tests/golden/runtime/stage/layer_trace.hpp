// One layer at a time on recorded inputs: nothing accumulates, so bounds are tight.
//
// A trace holds the inputs and every intermediate of one prefill and two decode steps. For each
// layer the recorded streams go in; global KV, selections and candidates of other layers come from
// the trace.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/stage/layer_runner.hpp"
#include "runtime/stage/model_source.hpp"
#include "tests/support/golden.hpp"

namespace cedar::test {

/// A deliberate mistake: changes configuration or weights before the layers run.
struct mistake {
  std::string name;
  std::function<void(model::model_config&)> in_config = [](model::model_config&) {};
  std::function<void(model::layer_weights&)> in_weights = [](model::layer_weights&) {};
  bool all_candidates = false;  ///< the candidate pool is everything
  bool no_images = false;  ///< rows of image spans are taken for text
};

/// How far a layer's tensors are from the recorded ones.
struct layer_deviation {
  std::map<std::string, double> relative_rms;  ///< bf16 tensors
  std::map<std::string, double> largest_ulps;  ///< bf16 tensors: in steps of the largest magnitude
  std::map<std::string, double> absolute;  ///< fp32 tensors
  std::size_t wrong_choices = 0;  ///< rows whose experts or positions differ
};

class layer_trace {
 public:
  /// `checkpoint`: folder below tests/data/golden, with one trace. Throws if it cannot be opened.
  layer_trace(const std::string& checkpoint, const kernels::backend& backend);

  std::uint32_t layers() const { return source_->config().layers; }

  /// Runs prefill and both decode steps of one layer; deviations over all three.
  layer_deviation run(std::uint32_t layer, const mistake& with = {}) const;

  /// The Engram module before `layer`: streams in, streams out; and the table rows that its tokens
  /// address, which must be the recorded ones (else wrong_choices). Zero if there is none.
  layer_deviation run_engram(std::uint32_t layer) const;

 private:
  struct call {
    std::string prefix;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::vector<token_id> tokens{};
  };
  struct setting;

  std::vector<call> calls() const;
  void run_call(const setting& with, const call& at, layer_deviation& out) const;
  void check_addresses(std::uint32_t layer, layer_deviation& out) const;
  void fill_owner(const setting& with, const call& at) const;
  stage::selection_overrides recorded_choice(const setting& with, const call& at) const;
  std::vector<kernels::candidate_pool> recorded_candidates(const setting& with,
                                                           const call& at) const;
  void compare(std::uint32_t layer, const call& at, const std::string& name,
               const model::tapped_tensor& actual, layer_deviation& out) const;

  const kernels::backend& backend_;
  std::unique_ptr<stage::model_source> source_;
  golden_file trace_;
};

}  // namespace cedar::test
