// The rule of runtime/model/sampling.hpp written down as plainly as possible: sorts everything,
// computes all noise. The same arithmetic in the same order, so that choices must be equal.
#pragma once

#include "runtime/model/sampling.hpp"

namespace cedar::test {

/// Tokens that survive all filters, ascending. `scores`: x of every token.
std::vector<token_id> plain_survivors(const std::vector<double>& scores,
                                      const flow::sampling_options& options);

token_id plain_choice(std::span<const float> logits, const flow::sampling_options& options,
                      const model::token_uses& uses, std::uint32_t position);

}  // namespace cedar::test
