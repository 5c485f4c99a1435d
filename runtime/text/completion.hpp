// A finished answer of the model, taken apart: strictly, as the released parser does. Answers that
// are still being made, and those that are not quite well-formed, are completion_stream's job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/text/chat.hpp"

namespace cedar::text {

struct completed_call {
  tool_name name;
  std::string arguments;  ///< a JSON object, parameters in the order of the answer

  bool operator==(const completed_call&) const = default;
};

struct completion {
  std::string reasoning;  ///< empty in chat mode
  std::string content;
  std::vector<completed_call> tool_calls;
};

/// Takes `text`, an answer with its control strings, apart. In mode thinking the prompt ended with
/// <think>, so the answer begins with reasoning.
///
/// Errors: malformed, with the byte offset: no </think> in mode thinking, no end of sequence at the
/// end, control strings inside reasoning or content, calls that deviate from the format in any
/// byte, repeated parameters, values that are neither flagged as strings nor JSON.
result<completion> parse_completion(std::string_view text, chat_mode mode);

}  // namespace cedar::text
