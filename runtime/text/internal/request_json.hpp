// Members of the JSON of requests.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/text/member_error.hpp"

namespace cedar::text::internal {

/// The value of `key`, or null.
inline const nlohmann::ordered_json& member(const nlohmann::ordered_json& object, const char* key) {
  static const nlohmann::ordered_json absent;
  const auto found = object.find(key);
  return found == object.end() ? absent : *found;
}

/// "content[3]"
inline std::string element_path(const std::string& list, std::size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

/// Null and nothing leave `out` as it is.
inline member_result<void> read_string_to(const nlohmann::ordered_json& object, const char* key,
                                          std::string& out) {
  const nlohmann::ordered_json& value = member(object, key);
  if (value.is_null()) return {};
  if (!value.is_string()) return invalid(key, "not a string");
  out = value.get<std::string>();
  return {};
}

}  // namespace cedar::text::internal
