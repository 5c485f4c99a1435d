#include "runtime/text/chat_json.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "runtime/text/internal/chat_strings.hpp"
#include "runtime/text/internal/chat_turns.hpp"
#include "runtime/text/internal/python_json.hpp"
#include "runtime/text/internal/request_json.hpp"
#include "runtime/text/internal/tool_json.hpp"

namespace cedar::text {
namespace {

using internal::element_path;
using internal::member;
using internal::read_string_to;
using nlohmann::ordered_json;

/// The last image's URL, and where it is. Its detail changes nothing: the model has one rule for
/// all sizes.
member_result<void> read_image_url(const ordered_json& value, content_image& to) {
  to.path = "image_url";
  if (value.is_string()) {
    to.url = value.get<std::string>();
    return {};
  }
  if (!value.is_object()) return invalid("image_url", "must be an object with a url, or the url");
  to.path = "image_url.url";
  if (!member(value, "url").is_string()) return invalid(to.path, "missing, or not a string");
  for (const auto& [key, of] : value.items()) {
    const bool detail = key == "detail" && (of == "auto" || of == "low" || of == "high");
    if (key != "url" && !detail && !of.is_null())
      return invalid("image_url." + key,
                     "beside the url only a detail of auto, low or high is known");
  }
  return read_string_to(value, "url", to.url);
}

/// Appends one block to the content.
member_result<void> read_block(const ordered_json& block, chat_message& to) {
  if (!block.is_object()) return invalid("", "not an object");
  const ordered_json& type = member(block, "type");
  if (type == "text") {
    if (!member(block, "text").is_string()) return invalid("text", "missing, or not a string");
    to.content += member(block, "text").get_ref<const std::string&>();
    return {};
  }
  if (type != "image_url")
    return invalid("type", "unknown; only blocks of type text and image_url are supported");
  to.images.push_back({to.content.size(), {}, {}});
  return read_image_url(member(block, "image_url"), to.images.back());
}

member_result<void> read_content(const ordered_json& value, chat_message& to) {
  if (value.is_string()) {
    to.content = value.get<std::string>();
    return {};
  }
  if (!value.is_array()) return invalid("content", "must be a string or a list of blocks");
  if (value.empty()) return invalid("content", "an empty list");
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (i > 0) to.content += blank_line;
    const std::size_t images = to.images.size();
    const std::string path = element_path("content", i);
    if (const member_result<void> block = read_block(value[i], to); !block)
      return invalid(block.error().in(path));
    if (to.images.size() > images) to.images.back().path = path + "." + to.images.back().path;
  }
  return {};
}

constexpr std::array<std::string_view, 12> known_keys = {
    "role",    "content",    "reasoning_content", "tool_calls", "tool_call_id",
    "wo_eos",  "tools",      "response_format",   "task",       "name",
    "refusal", "annotations"};

member_result<void> check_keys(const ordered_json& message) {
  for (const auto& [key, value] : message.items()) {
    if (value.is_null() || std::find(known_keys.begin(), known_keys.end(), key) != known_keys.end())
      continue;
    return invalid(key, "unknown key");
  }
  return {};
}

member_result<chat_role> read_role(const ordered_json& message) {
  const ordered_json& value = member(message, "role");
  if (!value.is_string()) return invalid("role", "missing, or not a string");
  const auto& name = value.get_ref<const std::string&>();
  if (const auto role = chat_role_named(name)) return *role;
  return invalid("role", "unknown '" + name + "'; known are " + chat_role_names());
}

member_result<std::optional<quick_task>> read_task(const ordered_json& message) {
  const ordered_json& value = member(message, "task");
  if (value.is_null()) return std::optional<quick_task>();
  const auto task =
      value.is_string() ? quick_task_named(value.get_ref<const std::string&>()) : std::nullopt;
  if (!task) return invalid("task", "unknown; known are " + quick_task_names());
  return task;
}

/// Keys whose values are lists, objects or flags.
member_result<void> read_structures(const ordered_json& message, chat_message& out) {
  if (const ordered_json& calls = member(message, "tool_calls"); !calls.is_null()) {
    member_result<std::vector<tool_call>> read = internal::read_calls(calls);
    if (!read) return invalid(read.error());
    out.tool_calls = std::move(*read);
  }
  if (const ordered_json& tools = member(message, "tools"); !tools.is_null()) {
    member_result<std::vector<tool_definition>> read = read_tools(tools);
    if (!read) return invalid(read.error());
    out.tools = std::move(*read);
  }
  if (const ordered_json& format = member(message, "response_format"); !format.is_null()) {
    if (!format.is_object()) return invalid("response_format", "not an object");
    out.response_format = format;
  }
  if (const ordered_json& continued = member(message, "wo_eos"); !continued.is_null()) {
    if (!continued.is_boolean()) return invalid("wo_eos", "must be true or false");
    out.continued = continued.get<bool>();
  }
  return {};
}

member_result<chat_message> read_message(const ordered_json& message) {
  if (!message.is_object()) return invalid("", "not an object");
  if (const member_result<void> checked = check_keys(message); !checked)
    return invalid(checked.error());
  chat_message out;
  const member_result<chat_role> role = read_role(message);
  if (!role) return invalid(role.error());
  out.role = *role;
  const ordered_json& content = member(message, "content");
  if (content.is_null() && out.role != chat_role::assistant) return invalid("content", "missing");
  if (!content.is_null()) {
    if (const member_result<void> read = read_content(content, out); !read)
      return invalid(read.error());
  }
  for (const member_result<void>& read :
       {read_string_to(message, "reasoning_content", out.reasoning),
        read_string_to(message, "tool_call_id", out.tool_call_id), read_structures(message, out)})
    if (!read) return invalid(read.error());
  const member_result<std::optional<quick_task>> task = read_task(message);
  if (!task) return invalid(task.error());
  out.task = *task;
  return out;
}

/// Copying values is recursive, so their depth is bounded before anything is copied.
member_result<void> check_list(const ordered_json& list, const char* name) {
  if (!list.is_array()) return invalid(name, "not a list");
  if (!json_levels_within_bounds(list))
    return invalid(name, "nested too deeply, at most " + std::to_string(json_levels_max) +
                             " levels are supported");
  return {};
}

}  // namespace

member_result<std::vector<chat_message>> read_messages(const ordered_json& list) {
  if (const member_result<void> checked = check_list(list, "messages"); !checked)
    return invalid(checked.error());
  std::vector<chat_message> out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    member_result<chat_message> message = read_message(list[i]);
    if (!message) return invalid(message.error().in(message_path(i)));
    message->path = message_path(i);
    for (content_image& image : message->images) image.path = message->path + "." + image.path;
    out.push_back(std::move(*message));
  }
  if (const member_result<void> checked = internal::check_results(out); !checked)
    return invalid(checked.error());
  return out;
}

member_result<std::vector<tool_definition>> read_tools(const ordered_json& list) {
  if (const member_result<void> checked = check_list(list, "tools"); !checked)
    return invalid(checked.error());
  return internal::read_tool_list(list);
}

result<std::uint32_t> read_effort(const ordered_json& value) {
  if (value.is_null()) return effort_default;
  if (value.is_number_integer()) return parse_effort(value.dump());
  if (!value.is_string())
    return fail(errc::invalid_argument, "reasoning effort: must be a word or a whole number");
  const auto& word = value.get_ref<const std::string&>();
  // A number in a string is not a preset, although the command line writes it so.
  if (!word.empty() && word.find_first_not_of("0123456789") == std::string::npos)
    return fail(errc::invalid_argument,
                "reasoning effort \"" + word + "\": a number must not be a string");
  return parse_effort(word);
}

}  // namespace cedar::text
