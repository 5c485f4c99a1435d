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

/// Errors: 400, with the path of what is wrong as param: "tools[1].function.name",
/// "messages[2].content[0].image_url.url".
api_result<chat_ask> parse_chat(std::string_view body);

}  // namespace cedar::http
