// Files of configs/models that are part of the program, so that it finds them wherever it lies.
#pragma once

#include <string_view>

namespace cedar::tools {

/// configs/models/released/config.json.
extern const std::string_view released_config;
/// configs/models/cedar-tiny/tokenizer.json.
extern const std::string_view small_tokenizer;

}  // namespace cedar::tools
