// The rules that every source file of the tree keeps, checked by reading it.
//
// directions   a component includes only components that the table lets it reach (layers.cpp)
// internal     internal/ headers are included by their own folder's .cpp and internal/ files only
// confinement  foreign libraries and process-wide calls stay in the folders that wrap them
// pragma       a header begins with #pragma once (after comments); Highway's -inl.hpp are exempt
// length       no source file or script has more than 700 lines
// markers      no comment says that something is left to fix
// readme       every component has a README.md
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cedar::architecture {

struct violation {
  std::string rule;
  std::string path;  ///< from the root
  std::size_t line = 0;  ///< 0: the whole file or folder
  std::string text;
};

/// "path:line: [rule] text".
std::string to_string(const violation& what);

/// All violations below `root`, ordered by path. Reads the folders kernels, runtime, schemas,
/// actors, topology, tools and tests (without tests/data); missing ones are skipped.
std::vector<violation> check_tree(const std::filesystem::path& root);

}  // namespace cedar::architecture
