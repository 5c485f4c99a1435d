// What is sent back: OpenAI's objects and chunks as JSON, and chunks as server-sent events.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/http/answer.hpp"

namespace cedar::http {

enum class response_kind : std::uint8_t { completion, chat };

/// What all objects of one response say.
struct response_head {
  response_kind kind = response_kind::completion;
  std::string id;
  std::int64_t created_s = 0;  ///< since 1970
  std::string model;
  std::string fingerprint;
  std::optional<std::uint64_t> seed;  ///< of the noise, if there was any
};

struct response_usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::uint64_t cached_tokens = 0;  ///< of the prompt, those of a prefix that was kept
  std::uint64_t drafted_tokens = 0;  ///< that were verified; 0: nobody drafted
  std::uint64_t accepted_tokens = 0;  ///< of them, those that the model chose too
};

/// A choice, or what is new of it.
struct choice_text {
  std::uint32_t index = 0;
  std::string text;
  std::string reasoning;  ///< chat
  std::vector<call_part> calls;  ///< chat; of a whole choice, one for each call
  bool first = false;  ///< chat chunk: the first one, which names the role
  bool scored = false;
  std::vector<scored_token> tokens;
  /// Of the prompt, if they were asked for: by position, of the first token none.
  std::vector<std::optional<prompt_score>> prompt;
  std::string finish_reason;  ///< empty: not finished
};

/// The whole response. `vocabulary` names the tokens of scores.
nlohmann::ordered_json response_body(const response_head& head,
                                     const std::vector<choice_text>& choices,
                                     const response_usage& usage,
                                     const text::tokenizer& vocabulary);
nlohmann::ordered_json response_chunk(const response_head& head, const choice_text& news,
                                      const text::tokenizer& vocabulary);
/// The chunk before the end of a stream that was asked for usage.
nlohmann::ordered_json usage_chunk(const response_head& head, const response_usage& usage);

std::string to_text(const nlohmann::ordered_json& value);

/// "data: <text>\n\n"; `text` has no line breaks.
std::string server_sent_event(std::string_view text);
inline constexpr std::string_view end_of_stream = "data: [DONE]\n\n";

}  // namespace cedar::http
