// Files of prompts, one JSON object a line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/session/request.hpp"
#include "tools/cedar/sampling_arguments.hpp"

namespace cedar::tools {

/// A line of a prompts file, or the one prompt of a command line.
struct prompt_line {
  std::string where;  ///< "prompts.jsonl:3"; empty: the command line
  std::string text;
  std::uint32_t new_tokens_max = 0;
  bool chat = false;
  sampling_arguments sampling;
  std::optional<session::prefill_mode> mode{};  ///< none: the pipeline's
  std::vector<std::filesystem::path> images{};  ///< in front of the text, which is a chat then
};

/// What is wrong with lines, until all of them have been looked at.
class line_mistakes {
 public:
  void add(const std::string& where, const error& what);
  /// All of them in one error, a line each, in the order of add(), with the code of the first;
  /// nothing if there are none.
  result<void> outcome() const;

 private:
  std::optional<error> all_;
};

/// Reads {"prompt": TEXT, "max_tokens": N, "chat": BOOL, "mode": "exact" or "bounded", "images":
/// [FILE, ...]} and sampling_keys; only the prompt is required, `defaults` has the rest. Blank
/// lines are passed over. Errors: not_found; invalid_argument (no prompt at all); for wrong lines
/// those of line_mistakes, each with the file and the line's number.
result<std::vector<prompt_line>> read_prompts_file(const std::filesystem::path& path,
                                                   const prompt_line& defaults);

}  // namespace cedar::tools
