// The flat configuration of the released reference code, which repeats the nested one's values
// under other names: every value that both files give must be the same.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/model/config_reader.hpp"

namespace cedar::model {

/// Adds a mismatch that names both keys and values for each disagreement, and a warning for each
/// key of `flat` that has no counterpart. Names are the files' names in messages.
void cross_check(const nlohmann::json& nested, const std::string& nested_name,
                 const nlohmann::json& flat, const std::string& flat_name,
                 config_problems& problems);

}  // namespace cedar::model
