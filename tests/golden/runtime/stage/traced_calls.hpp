// What a trace records: a prefill and the decode steps after it.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/ids.hpp"
#include "tests/support/golden.hpp"

namespace cedar::test {

/// Checkpoints with a trace: folders below tests/data/golden.
inline const std::vector<std::string> traced_checkpoints{"tiny-12", "tiny-40", "tiny-vision"};

/// The trace of `checkpoint`, as golden_file takes it.
std::string trace_path(const std::string& checkpoint);
/// The recorded prompt that was traced.
std::string traced_prompt_path(const std::string& checkpoint);

struct traced_call {
  std::string prefix;  ///< of its tensors' names: "prefill.", "decode0."
  std::uint32_t first = 0;  ///< position of its first row
  std::uint32_t count = 0;  ///< rows
  std::vector<token_id> tokens{};  ///< [count]

  std::string layer(std::uint32_t number) const {
    return prefix + "L" + std::to_string(number) + ".";
  }
};

/// The prefill first.
std::vector<traced_call> traced_calls(const golden_file& trace);

}  // namespace cedar::test
