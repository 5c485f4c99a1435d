// The compressed vocabulary of the Engram modules: spelling variants of one token share an id, so
// that they share n-grams.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/text/tokenizer.hpp"

namespace cedar::text {

struct engram_vocabulary {
  std::uint32_t tokens = 0;  ///< vocab_size of the model: length of the map
  std::uint32_t classes = 0;  ///< engram_compressed_vocab_size
  token_id pad_token = 0;  ///< engram_pad_token_id
};

/// Compressed id of every token of the model, [expected.tokens] int32.
///
/// Source: DeepSeek-V4.1-Flash's released reference code. The key of a token is its text in NFKC,
/// then NFD, without marks (Mn, Mc, Me), lower-cased character by character, with runs of space,
/// tab, CR and LF collapsed to one space and white space stripped at both ends; a key that is
/// exactly one space stays, an empty one falls back to the text itself, and a token that is not
/// text by itself (its bytes contain a broken UTF-8 sequence, or U+FFFD) has the string of the
/// tokenizer's file as its key. Ids are given to keys in the order of their first appearance over
/// ascending token ids.
///
/// Ids that the model has beyond the tokenizer's stand for no text: they are mapped like the pad
/// token, so that they add no class and no n-gram of their own.
///
/// Errors: mismatch if the number of classes is not `expected.classes` (every address depends on
/// it) or the model's vocabulary is smaller than the tokenizer's; invalid_argument for a pad token
/// outside the tokenizer's vocabulary.
result<std::vector<std::int32_t>> engram_token_map(const tokenizer& vocabulary,
                                                   const engram_vocabulary& expected);

/// How many compressed ids that rule makes of `vocabulary`: what engram_compressed_vocab_size has
/// to be. Errors: those of the tokenizer.
result<std::uint32_t> engram_classes(const tokenizer& vocabulary);

}  // namespace cedar::text
