// Whether a tool's parameters are a JSON Schema: what the model is shown, it takes for one.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/text/member_error.hpp"

namespace cedar::text::internal {

/// `schema`, of bounded depth, must be an object that describes an object. Known keywords must have
/// values of their kind, all the way down; unknown ones are left alone. Errors: the path
/// begins with "parameters".
member_result<void> check_parameters(const nlohmann::ordered_json& schema);

}  // namespace cedar::text::internal
