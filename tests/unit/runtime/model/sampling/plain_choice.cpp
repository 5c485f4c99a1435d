#include "tests/unit/runtime/model/sampling/plain_choice.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/ops/elementary.hpp"

namespace cedar::test {

namespace {

std::size_t at(token_id token) {
  return static_cast<std::size_t>(token);
}

}  // namespace

std::vector<token_id> plain_survivors(const std::vector<double>& scores,
                                      const flow::sampling_options& options) {
  std::vector<token_id> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](token_id a, token_id b) { return scores[at(a)] > scores[at(b)]; });
  if (options.top_k > 0 && options.top_k < order.size()) order.resize(options.top_k);

  const double best = scores[at(order.front())];
  const auto weight = [&](token_id token) {
    return kernels::natural_exp(scores[at(token)] - best);
  };
  if (options.top_p < 1) {
    std::vector<token_id> ascending = order;
    std::ranges::sort(ascending);
    double total = 0;
    for (const token_id token : ascending) total += weight(token);
    double sum = 0;
    std::size_t kept = 0;
    while (kept < order.size() && sum < options.top_p * total) sum += weight(order[kept++]);
    order.resize(kept);
  }
  if (options.min_p > 0)
    std::erase_if(order, [&](token_id token) { return weight(token) < options.min_p; });
  std::ranges::sort(order);
  return order;
}

token_id plain_choice(std::span<const float> logits, const flow::sampling_options& options,
                      const model::token_uses& uses, std::uint32_t position) {
  std::vector<double> scores(logits.begin(), logits.end());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    double& l = scores[i];
    if (const auto use = uses.find(static_cast<token_id>(i)); use != uses.end()) {
      if (use->second.total > 0)
        l = l > 0 ? l / options.repetition_penalty : l * options.repetition_penalty;
      if (use->second.answer > 0)
        l = l - use->second.answer * double{options.frequency_penalty} - options.presence_penalty;
    }
    for (const flow::token_bias& one : options.bias)
      if (at(one.token) == i) l += one.bias;
  }
  const auto best_of = [](const std::vector<double>& values) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < values.size(); ++i)
      if (values[i] > values[best]) best = i;
    return best;
  };
  if (options.temperature == 0) return static_cast<token_id>(best_of(scores));
  for (double& score : scores) score /= options.temperature;
  const std::vector<token_id> tokens = plain_survivors(scores, options);
  std::vector<double> noisy;
  for (const token_id token : tokens)
    noisy.push_back(scores[at(token)] + model::gumbel_noise(options, position, token));
  return tokens[best_of(noisy)];
}

}  // namespace cedar::test
