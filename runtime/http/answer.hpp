// One choice of a response in the making: tokens in, text out.
//
// 1. Text never ends inside a character, nor with what may be the beginning of a stop string.
// 2. Scores of tokens come with the first of their text; tokens that only a stop string consists of
//    have none.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/http/stop_matcher.hpp"
#include "runtime/text/completion_stream.hpp"
#include "runtime/text/stream_decoder.hpp"
#include "runtime/text/tokenizer.hpp"

namespace cedar::http {

struct token_score {
  token_id token = 0;
  float log_probability = 0;
};

struct scored_token {
  token_score chosen;
  std::vector<token_score> top;  ///< the most probable ones, best first
  std::size_t offset = 0;  ///< characters of the answer before it
};

/// More of a tool call.
struct call_part {
  std::uint32_t index = 0;  ///< counts the calls of the answer
  bool begins = false;
  std::string name;  ///< of a call that begins, as the model wrote it, so possibly empty
  std::string arguments;  ///< more of a JSON object
};

struct answer_delta {
  std::string text;
  std::string reasoning;  ///< chat
  std::vector<call_part> calls;  ///< chat
  std::vector<scored_token> tokens;

  bool empty() const noexcept {
    return text.empty() && reasoning.empty() && calls.empty() && tokens.empty();
  }
};

struct answer_setting {
  /// Looked for in what a person is told, not in reasoning and calls.
  std::vector<std::string> stops{};
  bool scored = false;  ///< tokens' scores are wanted
  std::optional<text::chat_mode> chat{};  ///< how the prompt of a chat ended; nothing: plain text
  std::string begun{};  ///< what the prompt of a chat has of the answer
  std::uint32_t tokens_min = 0;  ///< of the answer, before which no stop string counts
};

class answer {
 public:
  /// `vocabulary` outlives the answer.
  answer(const text::tokenizer& vocabulary, answer_setting setting)
      : decoder_(vocabulary, {.skip_special = true}),
        begun_(std::move(setting.begun)),
        matcher_(std::move(setting.stops)),
        scored_(setting.scored),
        tokens_min_(setting.tokens_min) {
    if (setting.chat) parser_.emplace(*setting.chat);
  }

  answer_delta push(const token_score& token, std::vector<token_score> top = {});
  /// What was held back, when no more tokens come.
  answer_delta finish();
  /// A stop string has come: there is no more text.
  bool stopped() const noexcept { return matcher_.stopped(); }
  /// Tokens so far.
  std::uint32_t tokens() const noexcept { return tokens_; }

 private:
  /// Text that the model has made, and its end.
  answer_delta take(const std::string& text, bool last);
  void release_tokens(answer_delta& to, bool all);

  text::stream_decoder decoder_;
  std::string begun_;  ///< until it is taken
  std::optional<text::completion_stream> parser_;
  stop_matcher matcher_;
  bool scored_;
  std::uint32_t tokens_min_;
  std::uint32_t tokens_ = 0;
  std::size_t decoded_ = 0;  ///< characters of the text, held back or not
  std::size_t released_ = 0;  ///< characters
  std::deque<scored_token> waiting_;
};

/// A token of a prompt, by the logits of the row before it.
struct prompt_score {
  token_score given;
  std::uint32_t rank = 0;  ///< 1: the most probable one
  std::vector<token_score> top;  ///< best first
};
prompt_score score_of(token_id given, std::span<const float> logits, std::uint32_t top);

/// The `count` most probable of `logits` with their log-probabilities; of equals the lower id
/// first.
std::vector<token_score> most_probable(std::span<const float> logits, std::uint32_t count);

}  // namespace cedar::http
