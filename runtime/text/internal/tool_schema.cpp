#include "runtime/text/internal/tool_schema.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace cedar::text::internal {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 7> types = {"null",   "boolean", "object", "array",
                                                   "number", "integer", "string"};

result<void> wrong(const std::string& path, const char* what) {
  return fail(errc::invalid_argument, path + ": " + what);
}

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

result<void> check_schema(const ordered_json& schema, const std::string& path);

result<void> check_list(const ordered_json& list, const std::string& path) {
  if (!list.is_array() || list.empty()) return wrong(path, "must be a list of schemas");
  for (std::size_t i = 0; i < list.size(); ++i)
    if (auto inside = check_schema(list[i], path + "[" + std::to_string(i) + "]"); !inside)
      return inside;
  return {};
}

result<void> check_map(const ordered_json& map, const std::string& path) {
  if (!map.is_object()) return wrong(path, "must be an object of schemas");
  for (const auto& [name, value] : map.items())
    if (auto inside = check_schema(value, path + "." + name); !inside) return inside;
  return {};
}

result<void> check_keyword(const std::string& key, const ordered_json& value,
                           const std::string& path) {
  if (key == "type" && !is_type(value) && !(all_of(value, is_type) && !value.empty()))
    return wrong(path,
                 "must be null, boolean, object, array, number, integer or string, or a list of "
                 "these");
  if (key == "required" && !all_of(value, is_text)) return wrong(path, "must be a list of names");
  if (key == "enum" && !value.is_array()) return wrong(path, "must be a list");
  if (key == "description" && !value.is_string()) return wrong(path, "must be a text");
  if (key == "properties" || key == "$defs" || key == "definitions") return check_map(value, path);
  if (key == "anyOf" || key == "oneOf" || key == "allOf") return check_list(value, path);
  if (key == "items" && value.is_array()) return check_list(value, path);
  if (key == "items" || key == "additionalProperties" || key == "not")
    return check_schema(value, path);
  return {};
}

result<void> check_schema(const ordered_json& schema, const std::string& path) {
  if (schema.is_boolean()) return {};
  if (!schema.is_object()) return wrong(path, "must be a JSON Schema: an object, true or false");
  for (const auto& [key, value] : schema.items())
    if (auto inside = check_keyword(key, value, path + "." + key); !inside) return inside;
  return {};
}

}  // namespace

result<void> check_parameters(const ordered_json& schema) {
  if (!schema.is_object()) return wrong("parameters", "must be a JSON Schema, an object");
  if (schema.contains("type") && schema["type"] != "object")
    return wrong("parameters.type", "must be \"object\": a tool takes named parameters");
  return check_schema(schema, "parameters");
}

}  // namespace cedar::text::internal
