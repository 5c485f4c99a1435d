// Conversations in the JSON of OpenAI-style requests.
//
// What would change the meaning of a prompt if it were overlooked is refused by its path
// ("messages[2].tool_calls[0].function.name"): unknown roles, kinds of content, keys of messages.
// Parse requests as ordered_json: the order of keys is part of a prompt. Bounding the size of a
// request is the caller's job: ordered_json takes quadratic time for objects with very many keys.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/text/chat.hpp"
#include "runtime/text/member_error.hpp"

namespace cedar::text {

/// A list of {"role": ..., "content": ...}. Content is a string or a list of {"type": "text",
/// "text": ...} and {"type": "image_url", "image_url": {"url": ...} or ...}, which are joined by
/// blank lines; an assistant's may be missing or null. More keys:
/// reasoning_content, tool_calls, tool_call_id, tools, response_format, task, and wo_eos (the
/// assistant's message goes on). Ignored: name, refusal, annotations, and whatever is null.
///
/// A message of role tool is the result of a call of the last assistant's message before it, which
/// its tool_call_id names; it is the call's only one. Calls without results, and without ids, are
/// taken. Arguments in a string need not be JSON: see tool_call.
///
/// Errors: the path begins with "messages". Whether members suit the role is encode_prompt()'s
/// question.
member_result<std::vector<chat_message>> read_messages(const nlohmann::ordered_json& list);

/// A list of {"type": "function", "function": {"name": ..., ...}}, no two of one name. A
/// "namespace" (a string, or an object with name and description) may stand on the tool or on the
/// function. Names of tools, also in calls, and of namespaces are 1 to 64 letters a-z and A-Z,
/// digits, _ and -. Errors: the path begins with "tools"; also for names that contradict the
/// namespace.
member_result<std::vector<tool_definition>> read_tools(const nlohmann::ordered_json& list);

/// "low", "high", "max" or an integer from 1 to 100; null: the default. Errors: invalid_argument.
result<std::uint32_t> read_effort(const nlohmann::ordered_json& value);

}  // namespace cedar::text
