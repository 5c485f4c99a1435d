// The rules that the values of one configuration must satisfy together.
#pragma once

#include "runtime/model/config.hpp"
#include "runtime/model/config_reader.hpp"

namespace cedar::model {

/// Adds a mismatch for each broken rule; rules about keys that could not be read are skipped.
/// `place` goes in front of messages ("config.json: text_config.").
///
/// Source: assertions and index arithmetic of the released reference code; kernels and schedule
/// rely on them without checking again.
void check_rules(const model_config& config, const std::string& place, config_problems& problems);

}  // namespace cedar::model
