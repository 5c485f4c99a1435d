// A golden prompt through the local engine: prefill in one step, then the recorded tokens one by
// one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ops/backend.hpp"
#include "runtime/local/local_engine.hpp"
#include "tests/support/golden.hpp"

namespace cedar::test {

/// An opened model with an engine on one backend.
struct golden_engine {
  std::unique_ptr<kernels::backend> backend;
  std::unique_ptr<stage::model_source> source;
  std::unique_ptr<local::local_engine> engine;
};

/// Throws if the checkpoint folder cannot be opened.
golden_engine open_engine(const std::string& folder, const std::string& backend);

struct golden_logits {
  std::size_t vocabulary = 0;
  std::vector<float> prefill;  ///< [prompt rows that walk the decoder, vocabulary]
  std::vector<float> decode;  ///< [decode steps, vocabulary]
};

/// How a prompt is run.
struct golden_options {
  bool force_selections = false;  ///< replay the file's sel.topk.* and sel.experts.*
  bool bounded = false;  ///< mode bounded, with the tokens and selections recorded for it
  std::size_t chunk = 0;  ///< prompt rows a step; 0: all
  std::vector<std::string> taps{};  ///< intermediates that on_tap gets of every step
  std::function<void(flow::tap)> on_tap{};
  std::function<void(const flow::step_table&)> after_step{};
};

/// The file's images go through the vision tower first.
golden_logits run_prompt(golden_engine& with, const golden_file& file,
                         const golden_options& options);

/// Root of the mean square of a - b.
double rms_difference(std::span<const float> a, std::span<const float> b);
double max_difference(std::span<const float> a, std::span<const float> b);
std::size_t arg_max(std::span<const float> values);

}  // namespace cedar::test
