// What is wrong with a file that a person wrote, where, and what to do about it.
//
// 1. Diagnostics come as a vector that holds all mistakes of one pass, ordered by place.
// 2. Lines and columns count from 1; a column counts bytes.
// 3. Text quoted from the file is escaped and shortened: a diagnostic is always printable ASCII,
// except
//    for the file's name.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cedar::topology {

/// A place in a text file.
struct position {
  std::uint32_t line = 1;
  std::uint32_t column = 1;

  friend auto operator<=>(const position&, const position&) = default;
};

struct diagnostic {
  std::string file;
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  std::string message;  ///< what is wrong and why
  std::string hint;  ///< what to write instead; may be empty

  friend bool operator==(const diagnostic&, const diagnostic&) = default;
};

/// "file:line:column: message", then "\n  hint: ..." if there is one. No final newline.
std::string to_string(const diagnostic& what);
/// All of them, one after another, each ended by a newline.
std::string to_string(const std::vector<diagnostic>& all);

/// Orders by line, then column; keeps the order of diagnostics about one place.
void sort_by_position(std::vector<diagnostic>& all);

/// `text` with control and non-ASCII bytes as \xNN.
std::string printable(std::string_view text);
/// The first 60 bytes of `text`, printable, in single quotes; "..." follows if there are more.
std::string in_quotes(std::string_view text);

}  // namespace cedar::topology
