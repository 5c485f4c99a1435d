#include "runtime/model/rotary.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cedar::model {

namespace {

/// Natural logarithm of x > 0 from IEEE operations alone: x = m * 2^e, ln m = 2 atanh((m-1)/(m+1)).
double fixed_log(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // [0.5, 1), exact
  if (mantissa < std::numbers::sqrt2 / 2) {
    mantissa *= 2;
    --exponent;
  }
  const double t = (mantissa - 1) / (mantissa + 1);
  const double t2 = t * t;
  double sum = 0;
  for (int k = 39; k >= 1; k -= 2) sum = sum * t2 + 1.0 / k;
  return 2 * t * sum + exponent * std::numbers::ln2;
}

/// e^x from IEEE operations alone: x = n ln 2 + r, Taylor series of e^r.
double fixed_exp(double x) {
  const double n = std::nearbyint(x / std::numbers::ln2);
  const double r = x - n * std::numbers::ln2;
  double sum = 1;
  for (int k = 24; k >= 1; --k) sum = 1 + sum * r / k;
  return std::ldexp(sum, static_cast<int>(n));
}

double correction_index(double beta, double theta, double dim, double original) {
  return dim * fixed_log(original / (2 * std::numbers::pi * beta)) / (2 * fixed_log(theta));
}

}  // namespace

std::vector<float> rotary_of(float theta, std::uint32_t dim, const yarn_config& yarn) {
  std::vector<float> frequencies(dim / 2);
  const double log_theta = fixed_log(theta);
  for (std::uint32_t i = 0; i < dim / 2; ++i)
    frequencies[i] = static_cast<float>(fixed_exp(-log_theta * (2.0 * i) / dim));
  if (yarn.original_positions == 0) return frequencies;

  const double original = yarn.original_positions;
  const double low =
      std::max(std::floor(correction_index(yarn.beta_fast, theta, dim, original)), 0.0);
  const double high =
      std::min(std::ceil(correction_index(yarn.beta_slow, theta, dim, original)), dim - 1.0);
  const auto width = static_cast<float>(std::max(high - low, 1e-3));
  for (std::uint32_t i = 0; i < dim / 2; ++i) {
    const float ramp =
        std::clamp((static_cast<float>(i) - static_cast<float>(low)) / width, 0.0F, 1.0F);
    const float keep = 1 - ramp;
    frequencies[i] = frequencies[i] / yarn.factor * (1 - keep) + frequencies[i] * keep;
  }
  return frequencies;
}

rotary_frequencies make_rotary(const model_config& config) {
  return {rotary_of(config.rope_theta, config.rope_dim, yarn_config{}),
          rotary_of(config.compress_rope_theta, config.rope_dim, config.yarn)};
}

}  // namespace cedar::model
