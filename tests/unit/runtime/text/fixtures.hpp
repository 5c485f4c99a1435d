// Tokenizers that the tests of runtime/text share.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer.hpp"

namespace cedar::text {

/// A tokenizer.json with the 256 bytes (ids 0..255 in the order of the byte values), the merges
/// "a a", "aa a", "b c", the control tokens <s> (special), <t> and <s><t>, and no expressions.
nlohmann::json minimal_document();

/// The tokenizer of `document`, which must be valid.
tokenizer make_tokenizer(const nlohmann::json& document);

/// The released tokenizer, loaded once per test program.
const tokenizer& released_tokenizer();

/// Folders below the source tree whose tokenizer.json is small.
std::vector<std::string> tiny_tokenizer_files();

/// Well-formed UTF-8 of `characters` random characters that provoke the tokenizer: blanks, digits,
/// letters, marks, punctuation, several scripts, control strings, characters of 1 to 4 bytes.
std::string random_text(std::mt19937_64& random, std::size_t characters);

/// Random bytes, biased towards the lead and continuation bytes of UTF-8.
std::string random_bytes(std::mt19937_64& random, std::size_t count);

std::string read_test_file(const std::string& path);

}  // namespace cedar::text
