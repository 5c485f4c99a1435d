#include "runtime/model/sampling.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>

#include "kernels/base/check.hpp"
#include "kernels/ops/elementary.hpp"
#include "runtime/model/philox.hpp"

namespace cedar::model {

namespace {

using flow::sampling_options;

std::size_t index_of(token_id token) {
  return static_cast<std::size_t>(token);
}

/// Steps 1 to 3.
void adjust(std::span<const float> logits, const sampling_options& options, const token_uses& uses,
            std::vector<double>& scores) {
  scores.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    CEDAR_REQUIRE(!std::isnan(logits[i]), "logit " + std::to_string(i) + " is NaN");
    scores[i] = logits[i];
  }
  if (has_penalties(options))
    for (const auto& [token, use] : uses) {
      double& l = scores.at(index_of(token));
      if (use.total > 0)
        l = l > 0 ? l / options.repetition_penalty : l * options.repetition_penalty;
      if (use.answer > 0)
        l = l - use.answer * double{options.frequency_penalty} - options.presence_penalty;
    }
  for (const flow::token_bias& one : options.bias) scores.at(index_of(one.token)) += one.bias;
}

token_id best_of(const std::vector<double>& scores) {
  return static_cast<token_id>(std::ranges::max_element(scores) - scores.begin());
}

/// Whether a token comes before another in descending order.
struct descending {
  const std::vector<double>& scores;
  bool operator()(token_id a, token_id b) const {
    const double left = scores[index_of(a)], right = scores[index_of(b)];
    return left > right || (left == right && a < b);
  }
};

/// Step 5. Order within the survivors is lost.
void keep_top_k(std::uint32_t k, const std::vector<double>& scores, std::vector<token_id>& tokens) {
  if (k == 0 || k >= tokens.size()) return;
  std::ranges::nth_element(tokens, tokens.begin() + k, descending{scores});
  tokens.resize(k);
}

/// e^(x - max x) of the survivors.
void weigh(const std::vector<double>& scores, const std::vector<token_id>& tokens,
           std::vector<double>& weights) {
  const double best = scores[index_of(*std::ranges::min_element(tokens, descending{scores}))];
  weights.resize(scores.size());
  // Equality first: infinities have no difference.
  for (const token_id token : tokens) {
    const double score = scores[index_of(token)];
    weights[index_of(token)] = score == best ? 1 : kernels::natural_exp(score - best);
  }
}

/// Step 6. The order of the survivors is lost.
void keep_top_p(double p, const std::vector<double>& scores, const std::vector<double>& weights,
                std::vector<token_id>& tokens) {
  std::ranges::sort(tokens);
  double wanted = 0;
  for (const token_id token : tokens) wanted += weights[index_of(token)];
  wanted *= p;
  // A heap, because few tokens are wanted as a rule. Its best is at the front, popped to the back.
  const auto worse = [order = descending{scores}](token_id a, token_id b) { return order(b, a); };
  std::ranges::make_heap(tokens, worse);
  double sum = 0;
  auto rest = tokens.end();
  while (sum < wanted && rest != tokens.begin()) {
    std::ranges::pop_heap(tokens.begin(), rest, worse);
    sum += weights[index_of(*--rest)];
  }
  tokens.erase(tokens.begin(), rest);
}

/// Step 7.
void keep_min_p(double m, const std::vector<double>& weights, std::vector<token_id>& tokens) {
  std::erase_if(tokens, [&](token_id token) { return weights[index_of(token)] < m; });
}

/// k of the noise.
std::uint64_t noise_bits(const sampling_options& options, std::uint32_t position,
                         token_id token) noexcept {
  const philox_key key{static_cast<std::uint32_t>(options.seed),
                       static_cast<std::uint32_t>(options.seed >> 32)};
  const philox_counter words =
      philox4x32({static_cast<std::uint32_t>(token), position, options.choice, 0}, key);
  return (std::uint64_t{words[0]} << 32 | words[1]) >> 12;
}

double noise_of(std::uint64_t k) noexcept {
  const double u = (static_cast<double>(k) + 0.5) * 0x1p-52;
  return -kernels::natural_log(-kernels::natural_log(u));
}

/// At least noise_of(k), for the price of counting bits: -ln u >= 1 - u, so g <= -ln(1 - u), and
/// 1 - u = (k' + 1/2) / 2^52 with k' = 2^52 - 1 - k. The slack covers the rounding of g.
double noise_bound(std::uint64_t k) noexcept {
  constexpr std::uint64_t last = (std::uint64_t{1} << 52) - 1;
  constexpr double ln2_and_slack = 0.6931471806;
  return (std::countl_zero(last - k) - 11) * ln2_and_slack;
}

/// Step 8, over tokens in any order.
class noisy_best {
 public:
  noisy_best(const sampling_options& options, std::uint32_t position)
      : options_(options), position_(position) {}

  void take(token_id token, double score) {
    const std::uint64_t k = noise_bits(options_, position_, token);
    if (best_ >= 0 && score + noise_bound(k) < best_score_) return;
    const double noisy = score + noise_of(k);
    if (best_ >= 0 && (noisy < best_score_ || (noisy == best_score_ && token > best_))) return;
    best_ = token;
    best_score_ = noisy;
  }
  token_id best() const { return best_; }

 private:
  const sampling_options& options_;
  std::uint32_t position_;
  token_id best_ = -1;
  double best_score_ = 0;
};

}  // namespace

double gumbel_noise(const sampling_options& options, std::uint32_t position,
                    token_id token) noexcept {
  return noise_of(noise_bits(options, position, token));
}

token_id choose_token(std::span<const float> logits, const sampling_options& options,
                      const token_uses& uses, std::uint32_t position, sampling_scratch& scratch) {
  CEDAR_REQUIRE(!logits.empty(), "a choice among no tokens");
  std::vector<double>& scores = scratch.scores;
  adjust(logits, options, uses, scores);
  if (options.temperature == 0) return best_of(scores);
  for (double& score : scores) score /= options.temperature;

  noisy_best chosen(options, position);
  const bool by_weight = options.top_p < 1 || options.min_p > 0;
  if (options.top_k == 0 && !by_weight) {
    for (std::size_t i = 0; i < scores.size(); ++i)
      chosen.take(static_cast<token_id>(i), scores[i]);
    return chosen.best();
  }
  std::vector<token_id>& tokens = scratch.survivors;
  tokens.resize(scores.size());
  std::iota(tokens.begin(), tokens.end(), token_id{0});
  keep_top_k(options.top_k, scores, tokens);
  if (by_weight) {
    weigh(scores, tokens, scratch.weights);
    if (options.top_p < 1) keep_top_p(options.top_p, scores, scratch.weights, tokens);
    keep_min_p(options.min_p, scratch.weights, tokens);
  }
  for (const token_id token : tokens) chosen.take(token, scores[index_of(token)]);
  return chosen.best();
}

}  // namespace cedar::model
