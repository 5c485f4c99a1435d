#include "runtime/vision/tower.hpp"

#include <string>

namespace cedar::vision {

image::image_rules rules_of(const model::vision_config& config) {
  return {config.patch, config.downsample, config.max_image_tokens, config.min_pixels,
          config.max_wh_ratio};
}

result<tower> tower::open(const store::checkpoint& checkpoint, const model::model_config& config,
                          const kernels::backend& backend) {
  result<tower_weights> weights = load_tower(checkpoint, config);
  if (!weights) return fail(weights.error());
  return tower(config, std::move(*weights), backend);
}

/// Plans come from other processes: every size is compared before memory is taken for it.
result<void> tower::check(const image::image_plan& plan, matrix_view<const bf16> patches) const {
  const std::uint64_t patch_count = std::uint64_t{plan.patch_rows} * plan.patch_columns;
  const std::uint64_t rows = cells_along(plan.patch_rows, config_.downsample);
  const std::uint64_t columns = cells_along(plan.patch_columns, config_.downsample);
  const bool fits = plan.patch_rows > 0 && plan.patch_columns > 0 && plan.token_rows == rows &&
                    plan.token_columns == columns &&
                    rows * (columns + 1) + 2 <= config_.max_image_tokens;
  if (!fits)
    return fail(errc::invalid_argument, "an image of " + std::to_string(plan.patch_rows) + " x " +
                                            std::to_string(plan.patch_columns) + " patches and " +
                                            std::to_string(plan.token_rows) + " x " +
                                            std::to_string(plan.token_columns) +
                                            " cells is none of the configuration's");
  const std::uint64_t values = std::uint64_t{3} * config_.patch * config_.patch;
  if (patches.rows != patch_count || patches.cols != values)
    return fail(errc::invalid_argument, "patches of an image are " + std::to_string(patches.rows) +
                                            " x " + std::to_string(patches.cols) + " instead of " +
                                            std::to_string(patch_count) + " x " +
                                            std::to_string(values));
  return {};
}

result<kernels::matrix_buffer<bf16>> tower::embed(const image::image_plan& plan,
                                                  matrix_view<const bf16> patches,
                                                  const model::taps& probes) {
  const result<void> checked = check(plan, patches);
  if (!checked) return fail(checked.error());
  scratch_.reset();
  const context c{*backend_, config_, scratch_, probes};
  const patch_grid grid{plan.patch_rows, plan.patch_columns};
  const auto features = scratch_.take<bf16>(grid.count(), config_.width);
  const auto aligned = scratch_.take<bf16>(plan.cells(), width_);
  encode(c, weights_.encoder, grid, patches, features);
  align(c, weights_.aligner, grid, features, aligned);
  kernels::matrix_buffer<bf16> out(plan.span_tokens(), width_);
  write_span(weights_.delimiters, plan, aligned, out.view());
  return out;
}

}  // namespace cedar::vision
