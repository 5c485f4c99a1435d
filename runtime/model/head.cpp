#include "runtime/model/head.hpp"

#include <algorithm>

#include "kernels/ops/elementary.hpp"

namespace cedar::model {

kernels::matrix_view<float> run_head(const context& c, const head_weights& weights,
                                     kernels::matrix_view<const kernels::bf16> collapsed) {
  const std::size_t n = collapsed.rows;
  c.probes.offer("final.collapsed", collapsed);
  const auto normed = c.scratch.take<kernels::bf16>(n, collapsed.cols);
  c.kernels.rms_norm({normed, collapsed, weights.norm, c.config.rms_epsilon});
  c.probes.offer("final.normed", normed);
  const auto logits = c.scratch.take<float>(n, c.config.vocabulary);
  c.kernels.linear_f32({logits, normed, weights.head});
  return logits;
}

float log_probability(std::span<const float> logits, std::int32_t token) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits)
    sum += kernels::natural_exp(static_cast<double>(logit) - largest);
  const double chosen = logits[static_cast<std::size_t>(token)];
  return static_cast<float>(chosen - largest - kernels::natural_log(sum));
}

}  // namespace cedar::model
