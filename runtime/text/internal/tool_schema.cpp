#include "runtime/text/internal/tool_schema.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace cedar::text::internal {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 7> types = {"null",   "boolean", "object", "array",
                                                   "number", "integer", "string"};

bool is_type(const ordered_json& value) {
  return value.is_string() &&
         std::ranges::find(types, value.get_ref<const std::string&>()) != types.end();
}

bool all_of(const ordered_json& list, bool (*holds)(const ordered_json&)) {
  return list.is_array() && std::all_of(list.begin(), list.end(), holds);
}

bool is_text(const ordered_json& value) {
  return value.is_string();
}

bool is_number(const ordered_json& value) {
  return value.is_number();
}

bool is_flag(const ordered_json& value) {
  return value.is_boolean();
}

bool is_count(const ordered_json& value) {
  return value.is_number_unsigned() ||
         (value.is_number_integer() && value.get<std::int64_t>() >= 0);
}

/// Keywords whose values are of one simple kind.
struct simple_keyword {
  std::string_view key;
  bool (*holds)(const ordered_json&);
  const char* otherwise;
};

constexpr const char* must_be_text = "must be a text";
constexpr const char* must_be_number = "must be a number";
constexpr const char* must_be_count = "must be a whole number, at least 0";
constexpr const char* must_be_flag = "must be true or false";

constexpr std::array simple_keywords = {
    simple_keyword{"description", is_text, must_be_text},
    simple_keyword{"title", is_text, must_be_text},
    simple_keyword{"format", is_text, must_be_text},
    simple_keyword{"pattern", is_text, must_be_text},
    simple_keyword{"$ref", is_text, must_be_text},
    simple_keyword{"$id", is_text, must_be_text},
    simple_keyword{"$schema", is_text, must_be_text},
    simple_keyword{"$comment", is_text, must_be_text},
    simple_keyword{"minimum", is_number, must_be_number},
    simple_keyword{"maximum", is_number, must_be_number},
    simple_keyword{"multipleOf", is_number, must_be_number},
    simple_keyword{"minLength", is_count, must_be_count},
    simple_keyword{"maxLength", is_count, must_be_count},
    simple_keyword{"minItems", is_count, must_be_count},
    simple_keyword{"maxItems", is_count, must_be_count},
    simple_keyword{"minProperties", is_count, must_be_count},
    simple_keyword{"maxProperties", is_count, must_be_count},
    simple_keyword{"uniqueItems", is_flag, must_be_flag},
};

member_result<void> check_schema(const ordered_json& schema, const std::string& path);

member_result<void> check_list(const ordered_json& list, const std::string& path) {
  if (!list.is_array() || list.empty()) return invalid(path, "must be a list of schemas");
  for (std::size_t i = 0; i < list.size(); ++i)
    if (auto inside = check_schema(list[i], path + "[" + std::to_string(i) + "]"); !inside)
      return inside;
  return {};
}

member_result<void> check_map(const ordered_json& map, const std::string& path) {
  if (!map.is_object()) return invalid(path, "must be an object of schemas");
  for (const auto& [name, value] : map.items())
    if (auto inside = check_schema(value, path + "." + name); !inside) return inside;
  return {};
}

member_result<void> check_keyword(const std::string& key, const ordered_json& value,
                                  const std::string& path) {
  if (key == "type" && !is_type(value) && !(all_of(value, is_type) && !value.empty()))
    return invalid(path,
                   "must be null, boolean, object, array, number, integer or string, or a list of "
                   "these");
  if (key == "required" && !all_of(value, is_text)) return invalid(path, "must be a list of names");
  if (key == "enum" && !value.is_array()) return invalid(path, "must be a list");
  for (const simple_keyword& simple : simple_keywords)
    if (key == simple.key && !simple.holds(value)) return invalid(path, simple.otherwise);
  if (key == "properties" || key == "$defs" || key == "definitions") return check_map(value, path);
  if (key == "anyOf" || key == "oneOf" || key == "allOf") return check_list(value, path);
  if (key == "items" && value.is_array()) return check_list(value, path);
  if (key == "items" || key == "additionalProperties" || key == "not")
    return check_schema(value, path);
  return {};
}

member_result<void> check_schema(const ordered_json& schema, const std::string& path) {
  if (schema.is_boolean()) return {};
  if (!schema.is_object()) return invalid(path, "must be a JSON Schema: an object, true or false");
  for (const auto& [key, value] : schema.items())
    if (auto inside = check_keyword(key, value, path + "." + key); !inside) return inside;
  return {};
}

}  // namespace

member_result<void> check_parameters(const ordered_json& schema) {
  if (!schema.is_object()) return invalid("parameters", "must be a JSON Schema, an object");
  if (schema.contains("type") && schema["type"] != "object")
    return invalid("parameters.type", "must be \"object\": a tool takes named parameters");
  return check_schema(schema, "parameters");
}

}  // namespace cedar::text::internal
