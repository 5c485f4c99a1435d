// JSON written as Python's json.dumps(value, ensure_ascii=False) writes it, which is what the model
// has seen: ", " and ": " between, other scripts as they are, floating point as repr() gives it.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace cedar::text {

/// Levels of arrays and objects that are accepted: writing and copying values is recursive.
inline constexpr std::size_t json_levels_max = 128;

/// True if `value` has at most json_levels_max levels. Not recursive.
bool json_levels_within_bounds(const nlohmann::ordered_json& value);

/// `value`, whose levels must be within bounds and whose strings must be UTF-8. Integers are those
/// of 64 bits: a longer one was made a double when it was parsed, and is written as such.
std::string python_json(const nlohmann::ordered_json& value);

/// True if all of `text` is one JSON value. (The library's own check stops at a zero byte.)
bool is_json(std::string_view text);

/// `text` as a JSON string, with quotes.
std::string python_json_string(std::string_view text);

/// Appends `text` as it stands between the quotes of a JSON string. Works on parts of a text.
void append_json_escaped(std::string_view text, std::string& out);

}  // namespace cedar::text
