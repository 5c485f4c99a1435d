#include "runtime/text/chat.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace cedar::text {
namespace {

template <class T>
struct named {
  T value;
  std::string_view name;
};

constexpr std::array<named<chat_role>, 5> roles = {{
    {chat_role::system, "system"},
    {chat_role::user, "user"},
    {chat_role::assistant, "assistant"},
    {chat_role::tool, "tool"},
    {chat_role::latest_reminder, "latest_reminder"},
}};

constexpr std::array<named<quick_task>, 6> tasks = {{
    {quick_task::action, "action"},
    {quick_task::query, "query"},
    {quick_task::authority, "authority"},
    {quick_task::domain, "domain"},
    {quick_task::title, "title"},
    {quick_task::read_url, "read_url"},
}};

constexpr std::array<named<std::uint32_t>, 3> efforts = {{
    {50, "low"},
    {effort_default, "high"},
    {effort_max, "max"},
}};

template <class T, std::size_t Count>
std::optional<T> value_of(const std::array<named<T>, Count>& table, std::string_view name) {
  for (const named<T>& one : table)
    if (one.name == name) return one.value;
  return std::nullopt;
}

template <class T, std::size_t Count>
std::string_view name_of(const std::array<named<T>, Count>& table, T value) {
  for (const named<T>& one : table)
    if (one.value == value) return one.name;
  return "?";
}

template <class T, std::size_t Count>
std::string names_of(const std::array<named<T>, Count>& table) {
  std::string out;
  for (const named<T>& one : table) out += (out.empty() ? "" : ", ") + std::string(one.name);
  return out;
}

constexpr std::string_view separator = "::";

}  // namespace

std::string_view to_string(chat_role role) noexcept {
  return name_of(roles, role);
}
std::string_view to_string(quick_task task) noexcept {
  return name_of(tasks, task);
}
std::optional<chat_role> chat_role_named(std::string_view name) noexcept {
  return value_of(roles, name);
}
std::optional<quick_task> quick_task_named(std::string_view name) noexcept {
  return value_of(tasks, name);
}
std::string chat_role_names() {
  return names_of(roles);
}
std::string quick_task_names() {
  return names_of(tasks);
}

result<std::uint32_t> parse_effort(std::string_view text) {
  if (const auto preset = value_of(efforts, text)) return *preset;
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value < 1 || value > effort_max)
    return fail(errc::invalid_argument, "reasoning effort '" + std::string(text) + "': must be " +
                                            names_of(efforts) + " or a whole number from 1 to " +
                                            std::to_string(effort_max));
  return value;
}

result<tool_name> parse_tool_name(std::string_view qualified) {
  tool_name out;
  std::string_view name = qualified;
  if (const std::size_t at = qualified.find(separator); at != std::string_view::npos) {
    out.name_space = qualified.substr(0, at);
    name = qualified.substr(at + separator.size());
    if (at == 0) name = {};
  }
  if (name.empty() || name.find(separator) != std::string_view::npos)
    return fail(errc::invalid_argument,
                "tool name '" + std::string(qualified) + "': must be NAME or NAMESPACE::NAME");
  out.name = name;
  return out;
}

}  // namespace cedar::text
