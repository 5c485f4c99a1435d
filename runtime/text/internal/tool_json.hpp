// Tools and calls of requests, and what the results in a conversation answer.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "runtime/text/chat.hpp"
#include "runtime/text/member_error.hpp"

namespace cedar::text::internal {

/// "tools" of a body or a message; `list`, of bounded depth, is an array. No two have one name.
member_result<std::vector<tool_definition>> read_tool_list(const nlohmann::ordered_json& list);

/// "tool_calls" of a message. No two have one id.
member_result<std::vector<tool_call>> read_calls(const nlohmann::ordered_json& list);

/// Every result must answer a call of the last assistant's message before it, by the call's id, and
/// be the only one that does.
member_result<void> check_results(std::span<const chat_message> messages);

}  // namespace cedar::text::internal
