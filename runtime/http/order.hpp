// From what a client asks to what the pipeline is to do: prompts as token ids, lengths that fit, a
// seed, one generation for every choice.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/http/api_request.hpp"
#include "runtime/http/api_response.hpp"
#include "runtime/http/chat_request.hpp"
#include "runtime/http/order_images.hpp"
#include "runtime/session/service.hpp"
#include "runtime/text/tokenizer.hpp"

namespace cedar::http {

/// What is served.
struct served_model {
  std::string name;
  std::string fingerprint;  ///< of the checkpoint, for people
  std::int64_t created_s = 0;  ///< since 1970
  session::prefill_mode mode = session::prefill_mode::exact;  ///< how prompts are run
};

struct generation_order {
  response_head head;
  std::vector<session::generation_request> requests;  ///< of choices 0, 1, ...
  std::vector<sent_image> images;  ///< of every request's prompt; until decode_images()
  std::vector<std::string> stops;
  std::optional<text::chat_mode> chat;  ///< nothing: plain text
  std::string begun;  ///< of the answer, by the prompt: markup of a call
  bool scored = false;
  std::uint32_t top_logprobs = 0;
  /// Scores of the prompt, with so many of the most probable tokens, with choice 0 of each prompt.
  std::optional<std::uint32_t> prompt_logprobs;
  bool stream = false;
  bool include_usage = false;
  std::optional<std::chrono::milliseconds> time_limit;  ///< as the client asked
  std::uint64_t prompt_tokens = 0;  ///< each prompt once
  /// Positions that the answers may fill, prompts included: what admission counts.
  std::uint64_t tokens_most = 0;
};

/// Decodes the images of an order and gives them to its requests; last of all, when the order is
/// let in, because it costs most: on a thread that serves no connection. Errors: those of decode().
api_result<void> decode_images(generation_order& order, const image::image_rules& rules);
using image_decoder = std::function<api_result<void>(generation_order&, const image::image_rules&)>;

class order_maker {
 public:
  /// The arguments outlive the maker.
  order_maker(const served_model& model, const text::tokenizer& vocabulary,
              const session::service_limits& limits)
      : model_(model), vocabulary_(vocabulary), limits_(limits) {}

  /// Errors: 404 (another model), 400 (a prompt that does not fit the context or the vocabulary,
  /// or names the image token; messages as encode_prompt() refuses them, and images as
  /// read_images() refuses them; a prompt and an answer that the context, or all KV there is, could
  /// not hold; sampling options beyond their rules; scores of a prompt that is not run exactly). An
  /// answer that the client did not limit is limited to what fits.
  api_result<generation_order> make(const completion_ask& ask) const;
  api_result<generation_order> make(const chat_ask& ask) const;

 private:
  api_result<std::vector<token_id>> tokens_of(const completion_ask::prompt& prompt) const;
  /// For a prompt of `length` tokens, given by the member `param`.
  api_result<std::uint32_t> new_tokens_of(const generation_ask& ask, std::size_t length,
                                          const char* param) const;
  api_result<generation_order> make(response_kind kind, const generation_ask& ask,
                                    const std::vector<std::vector<token_id>>& prompts) const;

  const served_model& model_;
  const text::tokenizer& vocabulary_;
  const session::service_limits& limits_;
};

}  // namespace cedar::http
