// Rotation frequencies of the two kinds of layers.
//
//   window      f_i = theta^(-2i/dim)                                   layers with ratio 0
//   compressed  u_i = theta_c^(-2i/dim), YaRN: f_i = u_i * sigma_i + (u_i / factor) * (1 -
//   sigma_i),
//               sigma_i = 1 - clamp((i - low) / max(high - low, 1e-3), 0, 1), with
//               low = max(floor(c(beta_fast)), 0), high = min(ceil(c(beta_slow)), dim - 1),
//               c(beta) = dim * ln(original / (2 pi beta)) / (2 ln theta_c)
// (DeepSeek-V4.1-Flash reference code.) The powers are computed in double with arithmetic that IEEE
// fixes, then rounded once, so that every machine gets the same frequencies.
#pragma once

#include <vector>

#include "runtime/model/config.hpp"

namespace cedar::model {

struct rotary_frequencies {
  std::vector<float> window;  ///< [rope_dim / 2]
  std::vector<float> compressed;  ///< [rope_dim / 2]

  const std::vector<float>& of_ratio(std::uint32_t ratio) const noexcept {
    return ratio == 0 ? window : compressed;
  }
};

rotary_frequencies make_rotary(const model_config& config);

/// theta^(-2i/dim) for i < dim/2, with YaRN where `yarn.original_positions` > 0.
std::vector<float> rotary_of(float theta, std::uint32_t dim, const yarn_config& yarn);

}  // namespace cedar::model
