// What comes before the first layer and after the last one, on recorded inputs.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/stage/model_source.hpp"
#include "tests/golden/runtime/stage/deviation.hpp"
#include "tests/golden/runtime/stage/traced_calls.hpp"

namespace cedar::test {

class ends_trace {
 public:
  /// `checkpoint`: folder below tests/data/golden, with one trace. Throws if it cannot be opened.
  ends_trace(const std::string& checkpoint, const kernels::backend& backend);

  /// Tokens and pixels to embedded rows. Fails the running case where a token's row is not the
  /// recorded one, or one of an image further from it than tests/data/golden/README.md, section 4,
  /// allows. Returns the names of what it compared.
  std::set<std::string> check_embedding() const;
  /// Embedded rows to the streams that layers and draft blocks begin with, bit by bit.
  std::set<std::string> check_first_streams() const;
  /// The last layer's rows to logits: collapsed, then from the recorded collapsed rows.
  layer_deviation run_head() const;

 private:
  void check_streams(kernels::matrix_view<const kernels::bf16> embedded, const std::string& prefix,
                     std::set<std::string>& compared) const;
  void run_logits(const traced_call& at, stage::head_stage& head, layer_deviation& out) const;

  const kernels::backend& backend_;
  std::unique_ptr<stage::model_source> source_;
  golden_file trace_;
  golden_file prompt_;
  std::vector<traced_call> calls_;
};

}  // namespace cedar::test
