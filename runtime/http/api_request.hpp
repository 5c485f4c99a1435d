// Bodies of POST /v1/completions and /v1/chat/completions as values that cannot be wrong.
//
// What would change an answer if it were overlooked is refused, by its name: unknown members, wrong
// types, values out of range, all of them in one error. Members of OpenAI's interface that change
// nothing here (user, metadata, ...) are taken and ignored.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/flow/sampling.hpp"
#include "runtime/http/body_reader.hpp"
#include "runtime/session/request.hpp"

namespace cedar::http {

inline constexpr std::uint32_t choices_max = 16;
inline constexpr std::uint32_t prompts_max = 16;
inline constexpr std::uint32_t stops_max = 16;
inline constexpr std::size_t stop_bytes_max = 512;
inline constexpr std::uint32_t top_logprobs_max = 20;
/// Seconds, 30 years: fits every clock.
inline constexpr double timeout_s_max = 1e9;

/// What both kinds of requests have.
struct generation_ask {
  std::string model;
  std::uint32_t n = 1;
  std::optional<std::uint32_t> new_tokens_max;  ///< nothing: new_tokens_default
  std::string new_tokens_member = "max_tokens";  ///< what the client calls it
  std::uint32_t new_tokens_default = 0;  ///< or less where less fits; 0: as many as fit
  bool ignore_eos = false;
  std::optional<session::prefill_mode> mode;  ///< nothing: the server's
  bool stream = false;
  bool include_usage = false;  ///< stream_options.include_usage
  std::vector<std::string> stops;
  bool logprobs = false;
  std::uint32_t top_logprobs = 0;
  /// Scores of the prompt's tokens, with so many of the most probable ones. Only in mode exact.
  std::optional<std::uint32_t> prompt_logprobs;
  /// Without seed and choice. Temperature is 1 unless the request says otherwise.
  flow::sampling_options sampling;
  std::optional<std::uint64_t> seed;
  /// For the whole answer, more than 0. Nothing: as long as the server allows.
  std::optional<std::chrono::milliseconds> time_limit;
};

struct completion_ask : generation_ask {
  /// A text, which is continued after a begin-of-sequence token, or token ids as they are.
  using prompt = std::variant<std::string, std::vector<token_id>>;
  std::vector<prompt> prompts;  ///< at least one
};

/// Errors: 400.
api_result<completion_ask> parse_completion(std::string_view body);

/// The members of generation_ask but logprobs. `max_tokens_names`: what the length is called.
void read_generation(body_reader& body, std::initializer_list<const char*> max_tokens_names,
                     generation_ask& to);

}  // namespace cedar::http
