// The printable alphabet in which byte-level BPE writes bytes (GPT-2's table, U+0100 and up
// standing for the bytes that do not print).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cedar::text {

/// `bytes` written in the alphabet, as UTF-8.
std::string to_byte_alphabet(std::string_view bytes);

/// The bytes that `written` (well-formed UTF-8) stands for; nothing if a character is not in the
/// alphabet.
std::optional<std::string> from_byte_alphabet(std::string_view written);

}  // namespace cedar::text
