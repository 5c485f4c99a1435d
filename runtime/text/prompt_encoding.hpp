// Conversations to prompts in the chat format of DeepSeek-V4.1.
//
// 1. A prompt is a sequence of pieces, not one text: only what the template itself writes becomes
//    control tokens. Control strings inside messages, tool schemas and results stay text.
// 2. The pieces' texts joined are, byte for byte, the prompt of the released encoder; where that
//    one silently loses something (a task that nobody could answer), this one refuses.
// 3. Neighbouring text is one piece: its tokens do not depend on how it was put together.
// 4. An image is one control token here, "<｜deepseek_image｜>": its placeholder, for whoever knows
//    how many positions it takes (session::place_images).
// Answers are read by completion.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/text/chat.hpp"
#include "runtime/text/member_error.hpp"
#include "runtime/text/tokenizer.hpp"

namespace cedar::text {

struct prompt_piece {
  std::string text;  ///< never empty
  bool control = false;  ///< the string of one control token

  bool operator==(const prompt_piece&) const = default;
};

struct prompt_options {
  chat_mode mode = chat_mode::chat;
  std::uint32_t effort = effort_default;  ///< 1..100; rendered in thinking mode only
  /// Render the reasoning of earlier turns too. It always is if a message carries tools.
  bool keep_reasoning = false;
  /// Leading messages that an earlier prompt has rendered: they decide how the rest looks, and
  /// are not rendered again.
  std::size_t context_messages = 0;
  /// The prompt ends within the answer, which has begun to call this tool: the parameters are next.
  /// Such an answer has no reasoning, so mode chat only.
  std::optional<tool_name> calling{};
};

/// What a prompt with `calling` has of the answer, for whoever reads the rest of it
/// (completion_stream).
std::string begun_call(const tool_name& calling);

/// The prompt that asks for the next message after `messages`; in thinking mode the answer begins
/// with reasoning, unless the last message is `continued` or has a task.
///
/// Errors, by the request's member ("messages[1].task"; "tool_choice" for `calling`): nothing to
/// render, effort outside 1..100, members that do not belong to the role, a task that is not
/// answered or on the wrong role, `continued` before the last message, `calling` where no answer
/// begins or one begins with reasoning, arguments that are neither object nor string, JSON nested
/// too deeply, text that is not UTF-8, an image within a character or beyond the content.
member_result<std::vector<prompt_piece>> encode_prompt(std::span<const chat_message> messages,
                                                       const prompt_options& options);

/// The images of the prompt that encode_prompt() makes, in the order of their placeholders.
std::vector<const content_image*> images_of(std::span<const chat_message> messages,
                                            const prompt_options& options);

/// `text` to be continued: begin of sequence, then the text, in which nothing is control.
std::vector<prompt_piece> continuation_prompt(std::string_view text);

/// Token ids of a prompt. Errors: not_found for a control string that the tokenizer lacks (a small
/// vocabulary), else those of tokenizer::encode().
result<std::vector<token_id>> tokenize(const tokenizer& vocabulary,
                                       std::span<const prompt_piece> pieces);

}  // namespace cedar::text
