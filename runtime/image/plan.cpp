#include "runtime/image/plan.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/check.hpp"

namespace cedar::image {

namespace {

std::uint32_t divide_up(std::uint32_t count, std::uint32_t unit) {
  return (count + unit - 1) / unit;
}

image_plan plan_of(std::uint32_t width, std::uint32_t height, const image_rules& rules) {
  image_plan out;
  out.width = width;
  out.height = height;
  out.patch_rows = height / rules.patch;
  out.patch_columns = width / rules.patch;
  out.token_rows = divide_up(out.patch_rows, rules.downsample);
  out.token_columns = divide_up(out.patch_columns, rules.downsample);
  return out;
}

std::uint64_t cost_of(const image_plan& plan) {
  return std::uint64_t{plan.token_rows} * (plan.token_columns + std::uint64_t{1}) + 2;
}

/// The largest size of about this shape whose span has at most tokens_max positions: columns x and
/// rows y = x * ratio solve y * (x + 1) = tokens_max - 2.
image_plan shrink(double width, double height, const image_rules& rules) {
  const std::uint32_t cell = rules.patch * rules.downsample;
  const std::uint32_t budget = rules.tokens_max - 2;
  const double ratio = height / width;
  const double columns = std::sqrt(budget / ratio + 0.25) - 0.5;
  const double rows = columns * ratio;
  if (columns < 1) return plan_of(cell, budget / 2 * cell, rules);
  if (rows < 1) return plan_of((budget - 1) * cell, cell, rules);
  const double scale =
      std::min(std::floor(columns) * cell / width, std::floor(rows) * cell / height);
  const auto whole_patches = [&](double side) {
    return static_cast<std::uint32_t>(std::floor(side * scale / rules.patch)) * rules.patch;
  };
  return plan_of(whole_patches(width), whole_patches(height), rules);
}

}  // namespace

image_plan plan_image(std::uint32_t width, std::uint32_t height, const image_rules& rules) {
  CEDAR_REQUIRE(width > 0 && height > 0, "a picture with pixels");
  double columns = width;
  double rows = height;
  if (rules.wh_ratio_max)
    columns = std::min(columns, std::max(1.0, std::floor(*rules.wh_ratio_max * rows)));
  if (const double pixels = columns * rows; pixels < rules.pixels_min) {
    const double scale = std::sqrt(rules.pixels_min / pixels);
    columns = std::floor(columns * scale);
    rows = std::floor(rows * scale);
  }
  const auto patches = [&](double side) { return std::ceil(side / rules.patch) * rules.patch; };
  // Beyond any span's size the sides of a picture need not fit 32 bits.
  const double cells = columns / rules.patch * (rows / rules.patch);
  const bool certain = cells > 4.0 * rules.tokens_max * rules.downsample * rules.downsample;
  image_plan plan;
  if (!certain)
    plan = plan_of(static_cast<std::uint32_t>(patches(columns)),
                   static_cast<std::uint32_t>(patches(rows)), rules);
  if (certain || cost_of(plan) > rules.tokens_max) plan = shrink(columns, rows, rules);
  return plan;
}

std::optional<image_plan> plan_of_patches(std::uint32_t patch_rows, std::uint32_t patch_columns,
                                          const image_rules& rules) {
  // No side of a span within tokens_max is longer; products stay within 32 bits.
  const std::uint64_t side_max = std::uint64_t{rules.tokens_max} * rules.downsample;
  for (const std::uint32_t side : {patch_rows, patch_columns})
    if (side == 0 || side > side_max) return std::nullopt;
  const image_plan plan = plan_of(patch_columns * rules.patch, patch_rows * rules.patch, rules);
  if (cost_of(plan) > rules.tokens_max) return std::nullopt;
  return plan;
}

std::vector<span_token> span_layout(const image_plan& plan) {
  std::vector<span_token> out{span_token::start};
  out.reserve(plan.span_tokens());
  for (std::uint32_t row = 0; row < plan.token_rows; ++row) {
    out.insert(out.end(), plan.token_columns, span_token::image);
    out.push_back(span_token::newline);
  }
  out.push_back(span_token::end);
  return out;
}

}  // namespace cedar::image
