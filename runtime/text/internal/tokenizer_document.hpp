// A tokenizer.json of the Hugging Face tokenizers format, read into plain values.
//
// Whatever the format can express and cedar does not do is refused by the name of its key, so that
// a file that loads is tokenized exactly as its makers meant.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/text/internal/bpe.hpp"

namespace cedar::text {

/// Bound of the vocabulary: what is read from a file must not decide how much memory is taken.
inline constexpr std::size_t tokenizer_strings_max = std::size_t{1} << 24;

/// A token that is cut out of the text before anything else.
struct added_token {
  token_id token = 0;
  std::string content;
  bool special = false;
};

/// Invariants: ids are 0, 1, ... without gaps; contents of added tokens are neither empty nor
/// equal; merges name existing ids.
struct tokenizer_document {
  std::vector<std::string> strings;  ///< by id: byte alphabet, or the content of an added token
  std::vector<added_token> added;
  std::vector<std::string> split_patterns;  ///< in order of application
  std::vector<bpe_merge> merges;  ///< by rank
};

/// Errors: malformed (not JSON, not this format, contradicting itself), invalid_argument (a setting
/// that is not supported); both name the key.
result<tokenizer_document> parse_tokenizer_document(std::string_view json_text);

}  // namespace cedar::text
