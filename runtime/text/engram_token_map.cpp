#include "runtime/text/engram_token_map.hpp"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <string>
#include <string_view>
#include <unordered_map>

#include "kernels/base/check.hpp"
#include "runtime/text/utf8.hpp"

namespace cedar::text {
namespace {

bool is_mark(UChar32 character) {
  return (U_GET_GC_MASK(character) & U_GC_M_MASK) != 0;
}

bool collapses(UChar32 character) {
  return character == ' ' || character == '\t' || character == '\r' || character == '\n';
}

/// Marks dropped, the rest in lower case, runs of blanks as one space.
icu::UnicodeString fold(const icu::UnicodeString& decomposed) {
  icu::UnicodeString folded;
  bool after_blank = false;
  for (int32_t i = 0; i < decomposed.length(); i = decomposed.moveIndex32(i, 1)) {
    const UChar32 character = decomposed.char32At(i);
    if (is_mark(character)) continue;
    const bool blank = collapses(character);
    // The one character whose lower case is two (U+0130) has been decomposed. No upper-case
    // character turns into a blank.
    if (!blank) folded.append(u_tolower(character));
    if (blank && !after_blank) folded.append(UChar32{' '});
    after_blank = blank;
  }
  return folded;
}

icu::UnicodeString strip(const icu::UnicodeString& text) {
  int32_t begin = 0;
  int32_t end = text.length();
  while (begin < end && u_isUWhiteSpace(text.char32At(begin))) begin = text.moveIndex32(begin, 1);
  while (begin < end && u_isUWhiteSpace(text.char32At(end - 1))) end = text.moveIndex32(end, -1);
  return {text, begin, end - begin};
}

/// Normal form of a well-formed text; the text itself where nothing is left of it.
std::string normalized(const icu::Normalizer2& nfkd, const std::string& text) {
  UErrorCode status = U_ZERO_ERROR;
  // NFD of NFKC is NFKD.
  icu::UnicodeString key = fold(nfkd.normalize(icu::UnicodeString::fromUTF8(text), status));
  CEDAR_ASSERT(U_SUCCESS(status), u_errorName(status));
  if (key != icu::UnicodeString(UChar32{' '})) key = strip(key);
  if (key.isEmpty()) return text;
  std::string bytes;
  key.toUTF8String(bytes);
  return bytes;
}

result<std::string> key_of(const tokenizer& vocabulary, token_id token,
                           const icu::Normalizer2& nfkd) {
  const result<std::string_view> bytes = vocabulary.token_bytes(token);
  if (!bytes) return fail(bytes.error());
  const std::string text = to_valid_utf8(*bytes);
  if (text.find(replacement_character) != std::string::npos) return vocabulary.token_string(token);
  return normalized(nfkd, text);
}

struct token_classes {
  std::vector<std::int32_t> ids;  ///< of every token of the tokenizer
  std::uint32_t classes = 0;
};

result<token_classes> map_tokens(const tokenizer& vocabulary) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfkd = icu::Normalizer2::getNFKDInstance(status);
  if (U_FAILURE(status)) return fail(errc::io, std::string("ICU: ") + u_errorName(status));
  std::unordered_map<std::string, std::int32_t> classes;
  token_classes out;
  out.ids.reserve(vocabulary.vocabulary_size());
  for (std::size_t token = 0; token < vocabulary.vocabulary_size(); ++token) {
    result<std::string> key = key_of(vocabulary, static_cast<token_id>(token), *nfkd);
    if (!key) return fail(key.error());
    const std::int32_t fresh = static_cast<std::int32_t>(classes.size());
    out.ids.push_back(classes.try_emplace(std::move(*key), fresh).first->second);
  }
  out.classes = static_cast<std::uint32_t>(classes.size());
  return out;
}

}  // namespace

result<std::vector<std::int32_t>> engram_token_map(const tokenizer& vocabulary,
                                                   const engram_vocabulary& expected) {
  const std::size_t tokens = vocabulary.vocabulary_size();
  if (tokens > expected.tokens)
    return fail(errc::mismatch, "the tokenizer has " + std::to_string(tokens) +
                                    " tokens, the model's vocab_size is " +
                                    std::to_string(expected.tokens));
  if (expected.pad_token < 0 || static_cast<std::size_t>(expected.pad_token) >= tokens)
    return fail(errc::invalid_argument, "engram_pad_token_id " +
                                            std::to_string(expected.pad_token) +
                                            " is not a token of the tokenizer");
  auto made = map_tokens(vocabulary);
  if (!made) return fail(made.error());
  if (made->classes != expected.classes)
    return fail(errc::mismatch, "the tokenizer makes " + std::to_string(made->classes) +
                                    " compressed ids, engram_compressed_vocab_size is " +
                                    std::to_string(expected.classes));
  const std::int32_t pad = made->ids[static_cast<std::size_t>(expected.pad_token)];
  made->ids.resize(expected.tokens, pad);
  return std::move(made->ids);
}

result<std::uint32_t> engram_classes(const tokenizer& vocabulary) {
  const auto made = map_tokens(vocabulary);
  if (!made) return fail(made.error());
  return made->classes;
}

}  // namespace cedar::text
