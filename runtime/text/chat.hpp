// A conversation as DeepSeek-V4.1's chat format knows it, in plain values: what prompt_encoding
// renders, what chat_json reads from requests, what completion parses out of answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace cedar::text {

enum class chat_mode : std::uint8_t {
  chat,  ///< answers at once
  thinking,  ///< reasons first, between <think> and </think>
};

enum class chat_role : std::uint8_t { system, user, assistant, tool, latest_reminder };

/// Classifications for which the model has a token of its own; the answer is their output.
enum class quick_task : std::uint8_t { action, query, authority, domain, title, read_url };

/// Names as requests and errors write them.
std::string_view to_string(chat_role role) noexcept;
std::string_view to_string(quick_task task) noexcept;
std::optional<chat_role> chat_role_named(std::string_view name) noexcept;
std::optional<quick_task> quick_task_named(std::string_view name) noexcept;
/// All of them, for error messages: "system, user, ...".
std::string chat_role_names();
std::string quick_task_names();

/// How thoroughly to reason, 1..100. Low, high and max are 50, 75 and 100.
inline constexpr std::uint32_t effort_max = 100;
inline constexpr std::uint32_t effort_default = 75;
/// "low", "high", "max" or a whole number. Errors: invalid_argument.
result<std::uint32_t> parse_effort(std::string_view text);

/// The name of a tool; in prompts and completions "namespace::name", or the name alone.
struct tool_name {
  std::string name_space;  ///< empty: none
  std::string name;

  std::string qualified() const { return name_space.empty() ? name : name_space + "::" + name; }
  bool operator==(const tool_name&) const = default;
};
/// The parts of a qualified name. Errors: invalid_argument for nested or empty parts.
result<tool_name> parse_tool_name(std::string_view qualified);

struct tool_definition {
  tool_name name;
  std::string namespace_description;  ///< goes in front of the function's own description
  /// The function object of the request, in its order of keys; its "name" is replaced.
  nlohmann::ordered_json function;
};

struct tool_call {
  std::string id;  ///< names the call in its result; empty: none
  tool_name name;
  /// An object, or a string that holds one as JSON. A string that does not is passed on as the
  /// one parameter "arguments".
  nlohmann::ordered_json arguments;
};

/// A place in a message's content where an image stands.
struct content_image {
  std::size_t offset = 0;  ///< bytes of the content before it
  std::string url;  ///< as the message has it
  /// Where the request has it, for errors: "messages[0].content[1].image_url.url"; or none.
  std::string path;
};

/// Members that do not belong to the role must be as they are by default.
struct chat_message {
  chat_role role = chat_role::user;
  std::string content;
  std::vector<content_image> images;  ///< user; by offset

  std::string reasoning;  ///< assistant
  std::vector<tool_call> tool_calls;  ///< assistant
  /// Assistant, last message: the answer goes on where this one stops.
  bool continued = false;

  std::string tool_call_id;  ///< tool: the call that this is the result of; empty: unknown

  /// System: rendered. User: only make the reasoning of earlier turns stay.
  std::vector<tool_definition> tools;
  std::optional<nlohmann::ordered_json> response_format;  ///< system: a JSON schema

  /// User; assistant for `title`. The message is the last or an answer to the task follows.
  std::optional<quick_task> task;

  std::string path;  ///< where the request has it, for errors: "messages[2]"; empty: by its index
};

}  // namespace cedar::text
