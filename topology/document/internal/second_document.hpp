// Finds what follows the first document of a YAML stream.
#pragma once

#include <optional>
#include <string>

#include "topology/document/diagnostic.hpp"

namespace cedar::topology::internal {

struct document_start {
  position where;
  /// yaml-cpp 0.7 makes an endless row of empty documents of a stray ',' at the top level, all at
  /// its place.
  bool stray_token = false;
};

/// Where a second document begins, if one does. Throws YAML::Exception as yaml-cpp's parser does.
std::optional<document_start> find_second_document(const std::string& text);

}  // namespace cedar::topology::internal
