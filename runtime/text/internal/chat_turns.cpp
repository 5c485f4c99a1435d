#include "runtime/text/internal/chat_turns.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "runtime/text/internal/python_json.hpp"
#include "runtime/text/internal/request_json.hpp"
#include "runtime/text/utf8.hpp"

namespace cedar::text {
namespace {

using nlohmann::ordered_json;

/// Refuses members that mean nothing for the role, rather than leave them out of the prompt.
member_result<void> check_members(const chat_message& message) {
  const chat_role role = message.role;
  const auto belongs = [&](bool used, const char* member, const char* what,
                           std::initializer_list<chat_role> to) -> member_result<void> {
    if (!used || std::find(to.begin(), to.end(), role) != to.end()) return {};
    return invalid(member, "a message of role " + std::string(to_string(role)) + " has no " + what);
  };
  using enum chat_role;
  for (const member_result<void>& checked :
       {belongs(!message.images.empty(), "content", "images", {user}),
        belongs(!message.reasoning.empty(), "reasoning_content", "reasoning", {assistant}),
        belongs(!message.tool_calls.empty(), "tool_calls", "tool calls", {assistant}),
        belongs(message.continued, "wo_eos", "continuation", {assistant}),
        belongs(!message.tool_call_id.empty(), "tool_call_id", "tool call id", {tool}),
        belongs(!message.tools.empty(), "tools", "tools", {system, user}),
        belongs(message.response_format.has_value(), "response_format", "response format",
                {system})})
    if (!checked) return checked;
  if (message.task) {
    const bool placed = role == user || (role == assistant && *message.task == quick_task::title);
    if (!placed)
      return invalid("task", std::string(to_string(*message.task)) +
                                 " cannot be on a message of role " + std::string(to_string(role)) +
                                 "; tasks are on user messages, title on an assistant's too");
  }
  return {};
}

member_result<void> check_json(const chat_message& message) {
  for (std::size_t i = 0; i < message.tools.size(); ++i) {
    const ordered_json& function = message.tools[i].function;
    const std::string path = internal::element_path("tools", i) + ".function";
    if (!function.is_object()) return invalid(path, "not an object");
    if (!json_levels_within_bounds(function)) return invalid(path, "nested too deeply");
  }
  for (std::size_t i = 0; i < message.tool_calls.size(); ++i) {
    const ordered_json& arguments = message.tool_calls[i].arguments;
    const std::string path = arguments_path(i);
    if (!arguments.is_object() && !arguments.is_string())
      return invalid(path, "neither an object nor a string");
    if (!json_levels_within_bounds(arguments)) return invalid(path, "nested too deeply");
  }
  if (message.response_format && !json_levels_within_bounds(*message.response_format))
    return invalid("response_format", "nested too deeply");
  return {};
}

member_result<void> check_text(const chat_message& message) {
  for (const auto& [path, text] :
       {std::pair("content", &message.content), std::pair("reasoning_content", &message.reasoning)})
    if (const auto offset = first_invalid_utf8(*text))
      return invalid(path, "not UTF-8 at byte " + std::to_string(*offset));
  return {};
}

/// Images stand between characters of the content, in order.
member_result<void> check_images(const chat_message& message) {
  std::size_t before = 0;
  for (const content_image& image : message.images) {
    const bool inside =
        image.offset < message.content.size() &&
        (static_cast<unsigned char>(message.content[image.offset]) & 0xc0U) == 0x80U;
    if (image.offset < before || image.offset > message.content.size() || inside)
      return invalid("content", "no place for an image at byte " + std::to_string(image.offset));
    before = image.offset;
  }
  return {};
}

bool in_users_turn(chat_role role) {
  return role == chat_role::user || role == chat_role::tool;
}

/// What depends on the turns around: answers of tasks, the place of a continuation.
member_result<void> check_neighbours(const std::vector<chat_turn>& turns) {
  for (std::size_t i = 0; i + 1 < turns.size(); ++i) {
    const chat_message& message = *turns[i].message;
    const chat_role next = turns[i + 1].role;
    if (message.task && next != chat_role::assistant && next != chat_role::latest_reminder)
      return invalid(turns[i].path + ".task", "after " + std::string(to_string(*message.task)) +
                                                  " comes its answer by the assistant, or nothing");
    if (message.continued)
      return invalid(turns[i].path + ".wo_eos", "only the last message can be continued");
  }
  return {};
}

/// Sorts the tool results of each turn by the order of the latest calls before it; results of
/// unknown calls count as those of the first. Other parts keep their places.
void sort_results(std::vector<chat_turn>& turns) {
  std::map<std::string_view, std::size_t> order;
  for (chat_turn& turn : turns) {
    const auto& calls = turn.message->tool_calls;
    if (!calls.empty()) order.clear();
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (!calls[i].id.empty()) order[calls[i].id] = i;
    std::vector<const chat_message*> results;
    for (const chat_message* part : turn.parts)
      if (part->role == chat_role::tool) results.push_back(part);
    const auto place = [&](const chat_message* part) {
      const auto found = order.find(part->tool_call_id);
      return found == order.end() ? 0 : found->second;
    };
    std::stable_sort(results.begin(), results.end(), [&](const auto* left, const auto* right) {
      return place(left) < place(right);
    });
    auto next = results.begin();
    for (const chat_message*& part : turn.parts)
      if (part->role == chat_role::tool) part = *next++;
  }
}

}  // namespace

std::string message_path(std::size_t index) {
  return "messages[" + std::to_string(index) + "]";
}

std::string arguments_path(std::size_t call) {
  return internal::element_path("tool_calls", call) + ".function.arguments";
}

member_result<std::vector<chat_turn>> make_turns(std::span<const chat_message> messages,
                                                 const prompt_options& options) {
  std::vector<chat_turn> turns;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const chat_message& message = messages[i];
    const std::string path = message.path.empty() ? message_path(i) : message.path;
    for (const auto check : {check_members, check_json, check_text, check_images})
      if (const member_result<void> checked = check(message); !checked)
        return invalid(checked.error().in(path));
    const bool users = in_users_turn(message.role);
    const bool merges = users && i != options.context_messages && !turns.empty() &&
                        turns.back().role == chat_role::user && !turns.back().message->task;
    if (merges && message.task)
      return invalid(path + ".task",
                     std::string(to_string(*message.task)) +
                         " on a message that continues a user's turn; put it on the turn's only "
                         "one");
    if (!merges) turns.push_back({&message, i, path, users ? chat_role::user : message.role, {}});
    if (users) turns.back().parts.push_back(&message);
  }
  if (const member_result<void> checked = check_neighbours(turns); !checked)
    return invalid(checked.error());
  sort_results(turns);
  return turns;
}

}  // namespace cedar::text
