#include "runtime/text/chat_json.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "runtime/text/internal/chat_strings.hpp"
#include "runtime/text/internal/chat_turns.hpp"
#include "runtime/text/internal/python_json.hpp"
#include "runtime/text/internal/tool_schema.hpp"

namespace cedar::text {
namespace {

using nlohmann::ordered_json;

/// The value of `key`, or null.
const ordered_json& member(const ordered_json& object, const char* key) {
  static const ordered_json absent;
  const auto found = object.find(key);
  return found == object.end() ? absent : *found;
}

std::string element_path(const std::string& list, std::size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

result<std::string> read_string(const ordered_json& object, const char* key) {
  const ordered_json& value = member(object, key);
  if (value.is_null()) return std::string();
  if (!value.is_string()) return invalid(std::string(key) + ": not a string");
  return value.get<std::string>();
}

result<void> read_string_to(const ordered_json& object, const char* key, std::string& out) {
  result<std::string> read = read_string(object, key);
  if (!read) return fail(read.error());
  out = std::move(*read);
  return {};
}

/// An image's URL. Its detail changes nothing: the model has one rule for all sizes.
result<std::string> read_image_url(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object() || !member(value, "url").is_string())
    return invalid("image_url: must be an object with a url, or the url");
  for (const auto& [key, of] : value.items()) {
    const bool detail = key == "detail" && (of == "auto" || of == "low" || of == "high");
    if (key != "url" && !detail && !of.is_null())
      return invalid("image_url." + key +
                     ": beside the url only a detail of auto, low or high is known");
  }
  return read_string(value, "url");
}

/// Appends one block to the content.
result<void> read_block(const ordered_json& block, chat_message& to) {
  if (!block.is_object()) return invalid("not an object");
  const ordered_json& type = member(block, "type");
  if (type == "text") {
    if (!member(block, "text").is_string()) return invalid("text: missing, or not a string");
    to.content += member(block, "text").get_ref<const std::string&>();
    return {};
  }
  if (type != "image_url")
    return invalid("unknown type; only blocks of type text and image_url are supported");
  result<std::string> url = read_image_url(member(block, "image_url"));
  if (!url) return fail(url.error());
  to.images.push_back({to.content.size(), std::move(*url), {}});
  return {};
}

result<void> read_content(const ordered_json& value, chat_message& to) {
  if (value.is_string()) {
    to.content = value.get<std::string>();
    return {};
  }
  if (!value.is_array()) return invalid("content: must be a string or a list of blocks");
  if (value.empty()) return invalid("content: an empty list");
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (i > 0) to.content += blank_line;
    const std::size_t images = to.images.size();
    const std::string path = element_path("content", i);
    if (const result<void> block = read_block(value[i], to); !block)
      return fail(block.error().with(path));
    if (to.images.size() > images) to.images.back().path = path + ".image_url";
  }
  return {};
}

/// The name, and the namespace if one is given separately: it must not contradict the name's own.
result<tool_name> read_name(const ordered_json& function, const std::string& name_space) {
  const ordered_json& value = member(function, "name");
  if (!value.is_string()) return invalid("name: missing, or not a string");
  result<tool_name> name = parse_tool_name(value.get_ref<const std::string&>());
  if (!name || name_space.empty()) return name;
  if (!name->name_space.empty() && name->name_space != name_space)
    return invalid("name: '" + name->qualified() + "' contradicts namespace '" + name_space + "'");
  name->name_space = name_space;
  return parse_tool_name(name->qualified());
}

struct tool_namespace {
  std::string name;
  std::string description;
};

/// Of a tool or a call: on the object itself or on its function.
result<tool_namespace> read_namespace(const ordered_json& outer, const ordered_json& function) {
  const ordered_json& of_outer = member(outer, "namespace");
  const ordered_json& of_function = member(function, "namespace");
  if (!of_outer.is_null() && !of_function.is_null() && of_outer != of_function)
    return invalid("namespace: the function's contradicts it");
  const ordered_json& value = of_outer.is_null() ? of_function : of_outer;
  tool_namespace out;
  if (value.is_null()) return out;
  if (value.is_string()) {
    out.name = value.get<std::string>();
  } else if (value.is_object()) {
    for (const result<void>& read : {read_string_to(value, "name", out.name),
                                     read_string_to(value, "description", out.description)})
      if (!read) return fail(read.error().with("namespace"));
  }
  if (out.name.empty())
    return invalid("namespace: must be a name, or an object with name and description");
  return out;
}

result<tool_definition> read_tool(const ordered_json& tool) {
  if (!tool.is_object()) return invalid("not an object");
  const ordered_json& type = member(tool, "type");
  if (!type.is_null() && type != "function")
    return invalid("type: only tools of type function are supported");
  const ordered_json& function = member(tool, "function");
  if (!function.is_object()) return invalid("function: missing, or not an object");
  result<tool_namespace> name_space = read_namespace(tool, function);
  if (!name_space) return fail(name_space.error());
  result<tool_name> name = read_name(function, name_space->name);
  if (!name) return fail(name.error().with("function"));
  if (const ordered_json& parameters = member(function, "parameters"); !parameters.is_null())
    if (const auto sound = internal::check_parameters(parameters); !sound)
      return fail(sound.error().with("function"));
  tool_definition out{std::move(*name), std::move(name_space->description), function};
  out.function.erase("namespace");
  return out;
}

result<tool_call> read_call(const ordered_json& call) {
  if (!call.is_object()) return invalid("not an object");
  const ordered_json& function = member(call, "function");
  if (!function.is_object()) return invalid("function: missing, or not an object");
  tool_call out;
  if (const auto read = read_string_to(call, "id", out.id); !read) return fail(read.error());
  result<tool_namespace> name_space = read_namespace(call, function);
  if (!name_space) return fail(name_space.error());
  result<tool_name> name = read_name(function, name_space->name);
  if (!name) return fail(name.error().with("function"));
  out.name = std::move(*name);
  out.arguments = member(function, "arguments");
  if (!out.arguments.is_object() && !out.arguments.is_string())
    return invalid("function.arguments: must be a string or an object");
  return out;
}

result<std::vector<tool_call>> read_calls(const ordered_json& list) {
  if (!list.is_array()) return invalid("tool_calls: not a list");
  std::vector<tool_call> out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    result<tool_call> call = read_call(list[i]);
    if (!call) return fail(call.error().with(element_path("tool_calls", i)));
    out.push_back(std::move(*call));
  }
  return out;
}

constexpr std::array<std::string_view, 12> known_keys = {
    "role",    "content",    "reasoning_content", "tool_calls", "tool_call_id",
    "wo_eos",  "tools",      "response_format",   "task",       "name",
    "refusal", "annotations"};

result<void> check_keys(const ordered_json& message) {
  for (const auto& [key, value] : message.items()) {
    if (value.is_null() || std::find(known_keys.begin(), known_keys.end(), key) != known_keys.end())
      continue;
    return invalid("unknown key '" + key + "'");
  }
  return {};
}

result<chat_role> read_role(const ordered_json& message) {
  const ordered_json& value = member(message, "role");
  if (!value.is_string()) return invalid("role: missing, or not a string");
  const auto& name = value.get_ref<const std::string&>();
  if (const auto role = chat_role_named(name)) return *role;
  return invalid("role: unknown '" + name + "'; known are " + chat_role_names());
}

result<std::optional<quick_task>> read_task(const ordered_json& message) {
  const ordered_json& value = member(message, "task");
  if (value.is_null()) return std::optional<quick_task>();
  const auto task =
      value.is_string() ? quick_task_named(value.get_ref<const std::string&>()) : std::nullopt;
  if (!task) return invalid("task: unknown; known are " + quick_task_names());
  return task;
}

/// Keys whose values are lists, objects or flags.
result<void> read_structures(const ordered_json& message, chat_message& out) {
  if (const ordered_json& calls = member(message, "tool_calls"); !calls.is_null()) {
    result<std::vector<tool_call>> read = read_calls(calls);
    if (!read) return fail(read.error());
    out.tool_calls = std::move(*read);
  }
  if (const ordered_json& tools = member(message, "tools"); !tools.is_null()) {
    result<std::vector<tool_definition>> read = read_tools(tools);
    if (!read) return fail(read.error());
    out.tools = std::move(*read);
  }
  if (const ordered_json& format = member(message, "response_format"); !format.is_null()) {
    if (!format.is_object()) return invalid("response_format: not an object");
    out.response_format = format;
  }
  if (const ordered_json& continued = member(message, "wo_eos"); !continued.is_null()) {
    if (!continued.is_boolean()) return invalid("wo_eos: must be true or false");
    out.continued = continued.get<bool>();
  }
  return {};
}

result<chat_message> read_message(const ordered_json& message) {
  if (!message.is_object()) return invalid("not an object");
  if (const result<void> checked = check_keys(message); !checked) return fail(checked.error());
  chat_message out;
  const result<chat_role> role = read_role(message);
  if (!role) return fail(role.error());
  out.role = *role;
  const ordered_json& content = member(message, "content");
  if (content.is_null() && out.role != chat_role::assistant) return invalid("content: missing");
  if (!content.is_null()) {
    if (const result<void> read = read_content(content, out); !read) return fail(read.error());
  }
  for (const result<void>& read :
       {read_string_to(message, "reasoning_content", out.reasoning),
        read_string_to(message, "tool_call_id", out.tool_call_id), read_structures(message, out)})
    if (!read) return fail(read.error());
  const result<std::optional<quick_task>> task = read_task(message);
  if (!task) return fail(task.error());
  out.task = *task;
  return out;
}

/// Copying values is recursive, so their depth is bounded before anything is copied.
result<void> check_list(const ordered_json& list, const char* name) {
  if (!list.is_array()) return invalid(std::string(name) + ": not a list");
  if (!json_levels_within_bounds(list))
    return invalid(std::string(name) + ": nested too deeply, at most " +
                   std::to_string(json_levels_max) + " levels are supported");
  return {};
}

}  // namespace

result<std::vector<chat_message>> read_messages(const ordered_json& list) {
  if (const result<void> checked = check_list(list, "messages"); !checked)
    return fail(checked.error());
  std::vector<chat_message> out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    result<chat_message> message = read_message(list[i]);
    if (!message) return fail(message.error().with(message_path(i)));
    for (content_image& image : message->images) image.path = message_path(i) + "." + image.path;
    out.push_back(std::move(*message));
  }
  return out;
}

result<std::vector<tool_definition>> read_tools(const ordered_json& list) {
  if (const result<void> checked = check_list(list, "tools"); !checked)
    return fail(checked.error());
  std::vector<tool_definition> out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    result<tool_definition> tool = read_tool(list[i]);
    if (!tool) return fail(tool.error().with(element_path("tools", i)));
    out.push_back(std::move(*tool));
  }
  return out;
}

result<std::uint32_t> read_effort(const ordered_json& value) {
  if (value.is_null()) return effort_default;
  if (value.is_number_integer()) return parse_effort(value.dump());
  if (!value.is_string()) return invalid("reasoning effort: must be a word or a whole number");
  const auto& word = value.get_ref<const std::string&>();
  // A number in a string is not a preset, although the command line writes it so.
  if (!word.empty() && word.find_first_not_of("0123456789") == std::string::npos)
    return invalid("reasoning effort \"" + word + "\": a number must not be a string");
  return parse_effort(word);
}

}  // namespace cedar::text
