// Strict JSON: what a file says must have one meaning.
//
// nlohmann::json keeps the last of two equal keys and nests without limit; here both are errors.
// Only .cpp files include this header, so that nlohmann stays out of the public headers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace cedar::store {

/// Parses `text`. `name` (a file) goes in front of error messages. Errors: malformed, with the
/// place in the text, for a syntax error, invalid UTF-8, a key that occurs twice in one object, or
/// more than 32 levels of nesting. Messages are valid UTF-8 whatever the text holds.
result<nlohmann::json> parse_json(std::string_view text, const std::string& name);

}  // namespace cedar::store
