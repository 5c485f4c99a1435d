// Taps of a step's rows for the drafter, made of the streams that a stage offers by name.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/buffer.hpp"
#include "kernels/ops/backend.hpp"
#include "runtime/flow/messages.hpp"
#include "runtime/model/config.hpp"

namespace cedar::test {

class draft_taps {
 public:
  /// Both must outlive the object.
  draft_taps(const kernels::backend& backend, const model::model_config& config);

  /// What a step table has to name: "L9.in.stream", ...
  const std::vector<std::string>& names() const noexcept { return names_; }
  /// Receives the step's tensors.
  std::function<void(flow::tap)> receiver();
  /// What drafter_stage::extend() takes of the step that has run, whose target layers belong to the
  /// decoder; forgets it. Throws if one is missing.
  kernels::matrix_buffer<kernels::bf16> take(std::span<const flow::row_span> spans);

 private:
  const kernels::backend& backend_;
  const model::model_config& config_;
  std::vector<std::string> names_;
  std::map<std::string, flow::tap> received_;
};

}  // namespace cedar::test
