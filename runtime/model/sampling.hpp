// How the token after a row is chosen from the row's logits. Pure functions of their arguments: the
// same on every machine, whatever else is in the batch.
//
// With logits l [V], in this order (all arithmetic in binary64, kernels/ops/elementary.hpp for e^x
// and ln x):
// 1. Repetition penalty r, for each token t of prompt or answer: l_t > 0 ? l_t / r : l_t * r
//    (Keskar et al., "CTRL", 2019, with the sign rule of Hugging Face's
//    RepetitionPenaltyLogitsProcessor).
// 2. Frequency penalty f and presence penalty q, for each token t that the answer holds n_t times:
//    l_t - n_t f - q (the OpenAI API's definition).
// 3. Bias: l_t + b_t.
// 4. Temperature T = 0: arg max l, and nothing of what follows. Else x = l / T.
// 5. top-k: the k highest x survive.
// 6. top-p (Holtzman et al., "The Curious Case of Neural Text Degeneration", 2020): with
//    w = e^(x - max x) and S = the sum of w over the survivors in ascending id, survivors in
//    descending order are kept until the sum of their w, added in that order, is >= p S.
// 7. min-p (Nguyen et al., "Turning Up the Heat", 2024): tokens with w >= m survive.
// 8. arg max of x + g over the survivors: x is log p up to a number that all tokens share, and the
//    arg max is distributed as softmax(x) (Gumbel-max, see Maddison et al., 2014).
// Noise g = -ln(-ln u), u = (k + 1/2) / 2^52, k = the upper 52 bits of the first two words of
// Philox4x32-10 with key = seed (low word first), counter = (token, position, choice, 0). So a seed
// gives one answer, whatever the request's id, its batch, chunks and drafts.
//
// Ties: lower token id, everywhere. At least one token survives. NaN among the logits is a defect.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/flow/sampling.hpp"

namespace cedar::model {

/// How often a token stands before the one that is chosen.
struct token_use {
  std::uint32_t total = 0;  ///< in prompt and answer
  std::uint32_t answer = 0;
};
/// Tokens that stand nowhere are missing. Only penalties look at it.
using token_uses = std::unordered_map<token_id, token_use>;

/// Memory of choose_token, kept to save allocations; its content means nothing.
struct sampling_scratch {
  std::vector<double> scores;  ///< [V]
  std::vector<double> weights;  ///< [V]
  std::vector<token_id> survivors;
};

/// g of a token at an absolute position: the one that the token would stand at.
double gumbel_noise(const flow::sampling_options& options, std::uint32_t position,
                    token_id token) noexcept;

/// The token to stand at `position`. `logits` [V], not empty; options as flow::check() takes them.
token_id choose_token(std::span<const float> logits, const flow::sampling_options& options,
                      const token_uses& uses, std::uint32_t position, sampling_scratch& scratch);

}  // namespace cedar::model
