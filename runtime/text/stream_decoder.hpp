// Token ids to text, one token at a time, for answers that are shown while they are made.
#pragma once

#include <string>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/text/tokenizer.hpp"
#include "runtime/text/utf8.hpp"

namespace cedar::text {

/// What push() returned so far, with finish() last, is always well-formed UTF-8 and concatenates to
/// to_valid_utf8(tokenizer::decode(all tokens)): no piece ends inside a character. One answer each;
/// the tokenizer must outlive the decoder.
class stream_decoder {
 public:
  explicit stream_decoder(const tokenizer& vocabulary, decode_options options = {})
      : vocabulary_(&vocabulary), options_(options) {}

  /// The text that `token` completes, empty while it ends inside a character. Errors:
  /// invalid_argument for an id outside the vocabulary; the decoder is then as it was.
  result<std::string> push(token_id token);
  /// U+FFFD if the answer ends inside a character, else nothing.
  std::string finish() { return assembler_.finish(); }

 private:
  const tokenizer* vocabulary_;
  decode_options options_;
  utf8_assembler assembler_;
};

}  // namespace cedar::text
