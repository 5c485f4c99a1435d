// A C++ source file as the architecture rules see it: its includes, and its code without comments
// and without the contents of literals.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cedar::architecture {

struct include_line {
  std::size_t line = 0;  ///< from 1
  std::string target;  ///< "runtime/base/ids.hpp", "vector"
  bool quoted = false;  ///< "..." rather than <...>
};

struct source_text {
  std::vector<include_line> includes;
  std::vector<std::string> code;  ///< one per line; comments and contents of literals are blanks
  std::vector<std::string> comments;  ///< one per line: what was blanked
};

/// Understands //, block comments, character, string and raw string literals. Includes inside
/// comments do not count.
source_text parse_source(const std::string& text);

/// True if `line` contains `word` with no letter, digit or underscore beside it.
bool contains_word(const std::string& line, const std::string& word);

}  // namespace cedar::architecture
