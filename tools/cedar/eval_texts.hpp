// Texts that replay is evaluated on: one JSON object a line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/text/tokenizer.hpp"

namespace cedar::tools {

struct eval_text {
  std::vector<token_id> prompt;  ///< at least one id
  std::vector<token_id> following;  ///< fed after the prompt; at least one id
  bool is_answer = false;  ///< `following` is what the model should recall
};

/// Reads {"text": TEXT}, whose last `following` tokens are fed one by one, or {"text": TEXT,
/// "answer": TEXT}, whose answer is. Blank lines are passed over. Errors: not_found;
/// invalid_argument (no text at all); malformed, naming file and line: not such an object, a text
/// that is empty or not longer than `following` tokens.
result<std::vector<eval_text>> read_eval_texts(const std::filesystem::path& path,
                                               const text::tokenizer& tokenizer,
                                               std::uint32_t following);

}  // namespace cedar::tools
