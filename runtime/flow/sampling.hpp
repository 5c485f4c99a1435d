// How a token is chosen from the logits of its row. Requests carry it, the head obeys it
// (runtime/model/sampling.hpp has the formulas).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/ids.hpp"

namespace cedar::flow {

/// Added to the logit of a token before temperature.
struct token_bias {
  token_id token = 0;
  float bias = 0;

  friend bool operator==(const token_bias&, const token_bias&) = default;
};

/// Biases of one request at most.
inline constexpr std::uint32_t token_biases_max = 1024;

/// The defaults choose the arg max of the logits.
struct sampling_options {
  float temperature = 0;  ///< >= 0; 0: arg max, no noise
  std::uint32_t top_k = 0;  ///< keep the k most probable tokens; 0: all
  float top_p = 1;  ///< in (0, 1]: keep the smallest set of at least this probability
  float min_p = 0;  ///< in [0, 1]: keep tokens of at least this share of the best one's probability
  float repetition_penalty = 1;  ///< > 0; tokens of prompt and answer
  float presence_penalty = 0;  ///< tokens of the answer
  float frequency_penalty = 0;  ///< tokens of the answer, for each time
  std::uint64_t seed = 0;  ///< of the noise: the same seed gives the same answer
  std::uint32_t choice = 0;  ///< of several answers to one request
  /// Tokens of an answer that cannot be the end of sequence: it is not chosen before. 0: it may be
  /// the first one.
  std::uint32_t tokens_min = 0;
  std::vector<token_bias> bias;  ///< at most token_biases_max, each token once

  friend bool operator==(const sampling_options&, const sampling_options&) = default;
};

/// Whether the choice depends on earlier tokens.
inline bool has_penalties(const sampling_options& options) noexcept {
  return options.repetition_penalty != 1 || options.presence_penalty != 0 ||
         options.frequency_penalty != 0;
}

/// The options of a request in a step table.
struct request_sampling {
  request_id request;
  std::uint32_t prompt_tokens = 0;  ///< positions [0, prompt_tokens) are the prompt's
  sampling_options options;

  friend bool operator==(const request_sampling&, const request_sampling&) = default;
};

}  // namespace cedar::flow
