#include "runtime/text/internal/tool_json.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/text/internal/chat_turns.hpp"
#include "runtime/text/internal/request_json.hpp"
#include "runtime/text/internal/tool_schema.hpp"

namespace cedar::text::internal {
namespace {

using nlohmann::ordered_json;

/// Of a tool and of a namespace, as OpenAI's interface has it.
constexpr std::size_t name_bytes_max = 64;

bool is_name(std::string_view text) {
  constexpr std::string_view letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !text.empty() && text.size() <= name_bytes_max &&
         text.find_first_not_of(letters) == std::string_view::npos;
}

/// The name, and the namespace if one is given separately: it must not contradict the name's own.
member_result<tool_name> read_name(const ordered_json& function, const std::string& name_space) {
  const ordered_json& value = member(function, "name");
  if (!value.is_string()) return invalid("name", "missing, or not a string");
  result<tool_name> read = parse_tool_name(value.get_ref<const std::string&>());
  if (!read || !is_name(read->name) || !(read->name_space.empty() || is_name(read->name_space)))
    return invalid("name",
                   "must be NAME or NAMESPACE::NAME, each 1 to 64 of the letters a-z and A-Z, "
                   "digits, _ and -");
  if (name_space.empty()) return std::move(*read);
  if (!read->name_space.empty() && read->name_space != name_space)
    return invalid("name",
                   "'" + read->qualified() + "' contradicts the namespace '" + name_space + "'");
  read->name_space = name_space;
  return std::move(*read);
}

struct tool_namespace {
  std::string name;
  std::string description;
};

/// Of a tool or a call: on the object itself or on its function.
member_result<tool_namespace> read_namespace(const ordered_json& outer,
                                             const ordered_json& function) {
  const ordered_json& of_outer = member(outer, "namespace");
  const ordered_json& of_function = member(function, "namespace");
  if (!of_outer.is_null() && !of_function.is_null() && of_outer != of_function)
    return invalid("namespace", "the function's contradicts it");
  const ordered_json& value = of_outer.is_null() ? of_function : of_outer;
  const std::string path = of_outer.is_null() ? "function.namespace" : "namespace";
  tool_namespace out;
  if (value.is_null()) return out;
  if (value.is_object()) {
    for (const member_result<void>& read : {read_string_to(value, "name", out.name),
                                            read_string_to(value, "description", out.description)})
      if (!read) return invalid(read.error().in(path));
  } else if (value.is_string()) {
    out.name = value.get<std::string>();
  }
  if (!is_name(out.name))
    return invalid(path + (value.is_object() ? ".name" : ""),
                   "must be a name of 1 to 64 of the letters a-z and A-Z, digits, _ and -" +
                       std::string(value.is_object() || value.is_string()
                                       ? ""
                                       : ", or an object with name and description"));
  return out;
}

/// What tools and calls have in common.
struct named_function {
  const ordered_json* function = nullptr;
  tool_namespace name_space;
  tool_name name;
};

member_result<named_function> read_function(const ordered_json& outer) {
  if (!outer.is_object()) return invalid("", "not an object");
  const ordered_json& function = member(outer, "function");
  if (!function.is_object()) return invalid("function", "missing, or not an object");
  member_result<tool_namespace> name_space = read_namespace(outer, function);
  if (!name_space) return invalid(name_space.error());
  member_result<tool_name> name = read_name(function, name_space->name);
  if (!name) return invalid(name.error().in("function"));
  return named_function{&function, std::move(*name_space), std::move(*name)};
}

member_result<tool_definition> read_tool(const ordered_json& tool) {
  if (tool.is_object()) {
    const ordered_json& type = member(tool, "type");
    if (!type.is_null() && type != "function")
      return invalid("type", "only tools of type function are supported");
  }
  member_result<named_function> read = read_function(tool);
  if (!read) return invalid(read.error());
  if (const ordered_json& parameters = member(*read->function, "parameters"); !parameters.is_null())
    if (const auto sound = check_parameters(parameters); !sound)
      return invalid(sound.error().in("function"));
  tool_definition out{std::move(read->name), std::move(read->name_space.description),
                      *read->function};
  out.function.erase("namespace");
  return out;
}

member_result<tool_call> read_call(const ordered_json& call) {
  member_result<named_function> read = read_function(call);
  if (!read) return invalid(read.error());
  tool_call out;
  if (const auto id = read_string_to(call, "id", out.id); !id) return invalid(id.error());
  out.name = std::move(read->name);
  out.arguments = member(*read->function, "arguments");
  if (!out.arguments.is_object() && !out.arguments.is_string())
    return invalid("function.arguments", "must be a string or an object");
  return out;
}

}  // namespace

member_result<std::vector<tool_definition>> read_tool_list(const ordered_json& list) {
  std::vector<tool_definition> out;
  std::set<std::string> names;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = element_path("tools", i);
    member_result<tool_definition> tool = read_tool(list[i]);
    if (!tool) return invalid(tool.error().in(path));
    if (!names.insert(tool->name.qualified()).second)
      return invalid(path + ".function.name",
                     "another tool is called '" + tool->name.qualified() + "' already");
    out.push_back(std::move(*tool));
  }
  return out;
}

member_result<std::vector<tool_call>> read_calls(const ordered_json& list) {
  if (!list.is_array()) return invalid("tool_calls", "not a list");
  std::vector<tool_call> out;
  std::set<std::string> ids;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = element_path("tool_calls", i);
    member_result<tool_call> call = read_call(list[i]);
    if (!call) return invalid(call.error().in(path));
    if (!call->id.empty() && !ids.insert(call->id).second)
      return invalid(path + ".id", "another call of the message has the same");
    out.push_back(std::move(*call));
  }
  return out;
}

member_result<void> check_results(std::span<const chat_message> messages) {
  std::set<std::string_view> calls;
  std::set<std::string_view> answered;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const chat_message& message = messages[i];
    if (message.role == chat_role::assistant) {
      calls.clear();
      answered.clear();
      for (const tool_call& call : message.tool_calls) calls.insert(call.id);
    }
    if (message.role != chat_role::tool) continue;
    const std::string path = message_path(i) + ".tool_call_id";
    if (message.tool_call_id.empty())
      return invalid(path, "missing; it must be the id of the call that this is the result of");
    if (!calls.contains(message.tool_call_id))
      return invalid(path, "no call of the last assistant's message before has this id");
    if (!answered.insert(message.tool_call_id).second)
      return invalid(path, "the call has a result already");
  }
  return {};
}

}  // namespace cedar::text::internal
