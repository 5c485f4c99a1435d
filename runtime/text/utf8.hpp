// UTF-8: checking, replacing what is broken, and gluing pieces that end inside a character.
//
// Broken bytes are replaced as the Unicode standard recommends (chapter 3, "maximal subparts"):
// every longest prefix of a well-formed sequence becomes one U+FFFD, every other byte one of its
// own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cedar::text {

/// U+FFFD, the replacement character.
inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// Offset in bytes of the first sequence that is not well-formed UTF-8; nothing if all is well.
std::optional<std::size_t> first_invalid_utf8(std::string_view bytes) noexcept;

/// The same bytes with everything that is not well-formed UTF-8 replaced by U+FFFD.
std::string to_valid_utf8(std::string_view bytes);

/// Turns a stream of bytes into well-formed text that never ends inside a character. The texts
/// returned by push(), with finish() last, concatenate to to_valid_utf8() of all bytes.
class utf8_assembler {
 public:
  /// Everything up to the last complete character; an unfinished one waits (3 bytes at most).
  std::string push(std::string_view bytes);
  /// U+FFFD if a character is unfinished, else nothing. The assembler can be used again.
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace cedar::text
