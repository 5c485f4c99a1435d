// The body of POST /v1/chat/completions as a value that cannot be wrong (see api_request.hpp).
//
// Answers come at once unless the request asks for reasoning: {"thinking": {"type": "enabled"}}, or
// a reasoning_effort other than "none".
#pragma once

#include "runtime/http/api_request.hpp"
#include "runtime/text/prompt_encoding.hpp"

namespace cedar::http {

struct chat_ask : generation_ask {
  std::vector<text::chat_message> messages;
  text::prompt_options frame;
};

/// Errors: 400.
api_result<chat_ask> parse_chat(std::string_view body);

}  // namespace cedar::http
