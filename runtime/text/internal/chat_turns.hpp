// Messages as the turns that are rendered: checked, user and tool messages merged, results in the
// order of their calls.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/text/chat.hpp"
#include "runtime/text/member_error.hpp"
#include "runtime/text/prompt_encoding.hpp"

namespace cedar::text {

struct chat_turn {
  const chat_message* message = nullptr;  ///< the first one of the turn
  std::size_t index = 0;  ///< of that message
  std::string path;  ///< of that message, for errors
  chat_role role = chat_role::user;  ///< never tool: results are part of a user's turn
  std::vector<const chat_message*> parts;  ///< user: all messages of the turn, in order
};

/// Turns of `messages`, in which they must remain alive. No turn crosses the end of the context.
/// Errors: those of encode_prompt().
member_result<std::vector<chat_turn>> make_turns(std::span<const chat_message> messages,
                                                 const prompt_options& options);

/// "messages[3]", for errors.
std::string message_path(std::size_t index);
/// "tool_calls[0].function.arguments"
std::string arguments_path(std::size_t call);

}  // namespace cedar::text
