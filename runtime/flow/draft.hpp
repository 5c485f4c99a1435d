// What a drafter is asked for, and what it answers. Drafted tokens are guesses: they decide how
// many rows a step has, never which tokens an answer has.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/ids.hpp"

namespace cedar::flow {

/// A request goes on after its last token, and its next step waits for a draft.
struct draft_order {
  request_id request;
  token_id last = 0;  ///< the request's last token, which has had no row yet
  std::uint32_t position = 0;  ///< of `last`: the rows before it, and no others, stand
  std::uint32_t tokens_max = 0;  ///< at least 1; more would be of no use

  friend bool operator==(const draft_order&, const draft_order&) = default;
};

/// Tokens of a draft at most, whatever the model: what a frame may hold.
inline constexpr std::uint32_t draft_tokens_limit = 255;

/// Tokens that may follow an order's `last`, at the positions after it.
struct draft {
  request_id request;
  std::uint32_t position = 0;  ///< the order's
  std::vector<token_id> tokens;  ///< 0 to tokens_max
  /// [tokens]: probability in [0, 1] that the model chooses this token too, if it has chosen those
  /// before it. Empty: whoever drafted does not know.
  std::vector<float> confidences{};

  friend bool operator==(const draft&, const draft&) = default;
};

}  // namespace cedar::flow
