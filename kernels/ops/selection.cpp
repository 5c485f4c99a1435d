#include "kernels/ops/selection.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/base/check.hpp"

namespace cedar::kernels {

namespace {

void require_size(const char* what, std::size_t actual, std::size_t expected) {
  CEDAR_REQUIRE(actual == expected, std::string(what) + ": " + std::to_string(actual) +
                                        " instead of " + std::to_string(expected));
}

/// The best.size() highest of scores + bias, best first, lower expert first on ties.
void best_experts(std::span<const float> scores, std::span<const float> bias,
                  std::span<std::int32_t> best) {
  const auto biased = [&](std::size_t expert) { return scores[expert] + bias[expert]; };
  std::size_t found = 0;
  for (std::size_t expert = 0; expert < scores.size(); ++expert) {
    const float value = biased(expert);
    CEDAR_REQUIRE(!std::isnan(value),
                  "biased score of expert " + std::to_string(expert) + " is NaN");
    std::size_t place = found;
    while (place > 0 && biased(static_cast<std::size_t>(best[place - 1])) < value) --place;
    if (place == best.size()) continue;
    found = std::min(found + 1, best.size());
    for (std::size_t i = found - 1; i > place; --i) best[i] = best[i - 1];
    best[place] = static_cast<std::int32_t>(expert);
  }
}

/// Sum of the scores of `experts` (distinct), ascending by expert id whatever their order.
float ascending_sum(std::span<const float> scores, std::span<const std::int32_t> experts) {
  float sum = 0.0F;
  std::int32_t last = -1;
  for (std::size_t i = 0; i < experts.size(); ++i) {
    auto next = static_cast<std::int32_t>(scores.size());
    for (const std::int32_t expert : experts)
      if (expert > last && expert < next) next = expert;
    CEDAR_REQUIRE(
        static_cast<std::size_t>(next) < scores.size(),
        "an expert occurs twice among the " + std::to_string(experts.size()) + " of a row");
    sum += scores[static_cast<std::size_t>(next)];
    last = next;
  }
  return sum;
}

}  // namespace

void select_experts(matrix_view<const float> scores, std::span<const float> bias,
                    std::span<const float> image_bias, std::span<const std::uint8_t> image_rows,
                    matrix_view<std::int32_t> experts) {
  require_size("rows of experts", experts.rows, scores.rows);
  require_size("bias", bias.size(), scores.cols);
  CEDAR_REQUIRE(experts.cols <= scores.cols,
                std::to_string(experts.cols) + " experts of " + std::to_string(scores.cols));
  if (!image_rows.empty()) require_size("image marks", image_rows.size(), scores.rows);
  for (std::size_t row = 0; row < scores.rows; ++row) {
    const bool image = !image_rows.empty() && image_rows[row] != 0;
    if (image) require_size("image bias", image_bias.size(), scores.cols);
    best_experts(scores.row(row), image ? image_bias : bias, experts.row(row));
  }
}

void route_weights(matrix_view<const float> scores, matrix_view<const std::int32_t> experts,
                   bool normalize, float scale, matrix_view<float> weights) {
  require_size("rows of experts", experts.rows, scores.rows);
  require_size("rows of weights", weights.rows, scores.rows);
  require_size("columns of weights", weights.cols, experts.cols);
  for (std::size_t row = 0; row < scores.rows; ++row) {
    const std::span<const float> score = scores.row(row);
    const std::span<const std::int32_t> chosen = experts.row(row);
    for (const std::int32_t expert : chosen)
      CEDAR_REQUIRE(expert >= 0 && static_cast<std::size_t>(expert) < score.size(),
                    "expert " + std::to_string(expert) + " of " + std::to_string(score.size()));
    const bool divide = normalize && chosen.size() > 1;
    const float divisor = divide ? ascending_sum(score, chosen) + 1e-20F : 1.0F;
    for (std::size_t i = 0; i < chosen.size(); ++i)
      weights.row(row)[i] = score[static_cast<std::size_t>(chosen[i])] / divisor * scale;
  }
}

std::int32_t arg_max(std::span<const float> values) {
  CEDAR_REQUIRE(!values.empty(), "arg max of no values");
  std::size_t best = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    CEDAR_REQUIRE(!std::isnan(values[i]), "value " + std::to_string(i) + " is NaN");
    if (values[i] > values[best]) best = i;
  }
  return static_cast<std::int32_t>(best);
}

}  // namespace cedar::kernels
