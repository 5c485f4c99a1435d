#include "runtime/vision/encoder.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/base/check.hpp"
#include "runtime/model/rotary.hpp"

namespace cedar::vision {

namespace {

constexpr float norm_epsilon = 1e-6F;  // of the tower, unlike the text model's
/// Rows whose inner activations are held together; rows do not depend on each other there.
constexpr std::size_t mlp_rows = 512;

/// Patch rows and columns of all patches, and the frequencies of an axis.
struct rotary_positions {
  matrix_view<std::int32_t> rows_and_columns;  ///< [2, n]
  std::vector<float> frequencies;

  rotary_positions(const context& c, const patch_grid& grid)
      : rows_and_columns(c.scratch.take<std::int32_t>(2, grid.count())),
        frequencies(model::rotary_of(c.config.rope_theta, c.config.width / c.config.heads / 2,
                                     model::yarn_config{})) {
    for (std::size_t i = 0; i < grid.count(); ++i) {
      rows_and_columns.row(0)[i] = static_cast<std::int32_t>(i / grid.columns);
      rows_and_columns.row(1)[i] = static_cast<std::int32_t>(i % grid.columns);
    }
  }
};

void add_attention(const context& c, const block_weights& weights, const rotary_positions& at,
                   matrix_view<bf16> x) {
  const kernels::arena::mark mark(c.scratch);
  const std::size_t width = x.cols;
  const std::size_t head_dim = width / c.config.heads;
  const auto normed = c.scratch.take<bf16>(x.rows, width);
  const auto qkv = c.scratch.take<bf16>(x.rows, 3 * width);
  c.kernels.rms_norm({normed, x, weights.norm1, norm_epsilon});
  c.kernels.linear_bf16({qkv, normed, weights.wqkv.weight, weights.wqkv.bias});
  // Heads of q and k follow each other, so one call rotates both.
  c.kernels.rope_2d({qkv.cols_from(0, 2 * width), head_dim, at.rows_and_columns.row(0),
                     at.rows_and_columns.row(1), at.frequencies});
  const auto attended = normed;
  c.kernels.full_attention({attended, qkv.cols_from(0, width), qkv.cols_from(width, width),
                            qkv.cols_from(2 * width, width), head_dim,
                            1 / std::sqrt(static_cast<float>(head_dim))});
  const auto projected = qkv.cols_from(0, width);
  c.kernels.linear_bf16({projected, attended, weights.wo.weight, weights.wo.bias});
  c.kernels.add({x, x, projected});
}

void add_mlp(const context& c, const block_weights& weights, matrix_view<bf16> x) {
  const kernels::arena::mark mark(c.scratch);
  const std::size_t inner = c.config.inner;
  const std::size_t rows_max = std::min(x.rows, mlp_rows);
  const auto normed = c.scratch.take<bf16>(rows_max, x.cols);
  const auto gate_up = c.scratch.take<bf16>(rows_max, 2 * inner);
  const auto activated = c.scratch.take<bf16>(rows_max, inner);
  for (std::size_t first = 0; first < x.rows; first += mlp_rows) {
    const std::size_t count = std::min(mlp_rows, x.rows - first);
    const auto rows = x.rows_from(first, count);
    const auto in = normed.rows_from(0, count);
    const auto both = gate_up.rows_from(0, count);
    const auto active = activated.rows_from(0, count);
    c.kernels.rms_norm({in, rows, weights.norm2, norm_epsilon});
    c.kernels.linear_bf16({both, in, weights.w1.weight, weights.w1.bias});
    c.kernels.swiglu({active, both.cols_from(0, inner), both.cols_from(inner, inner), {}, 0, true});
    c.kernels.linear_bf16({in, active, weights.w2.weight, weights.w2.bias});
    c.kernels.add({rows, rows, in});
  }
}

}  // namespace

void apply_block(const context& c, const block_weights& weights, const patch_grid& grid,
                 matrix_view<bf16> x) {
  const kernels::arena::mark mark(c.scratch);
  const rotary_positions at(c, grid);
  add_attention(c, weights, at, x);
  add_mlp(c, weights, x);
}

void encode(const context& c, const encoder_weights& weights, const patch_grid& grid,
            matrix_view<const bf16> patches, matrix_view<bf16> features) {
  CEDAR_REQUIRE(patches.rows == grid.count() && features.rows == grid.count(),
                "a row for every patch of the grid");
  const kernels::arena::mark mark(c.scratch);
  const auto x = c.scratch.take<bf16>(patches.rows, features.cols);
  c.kernels.linear_bf16({x, patches, weights.patches.weight, weights.patches.bias});
  c.probes.offer("vision.patch_embed", x);
  for (std::size_t i = 0; i < weights.blocks.size(); ++i) {
    apply_block(c, weights.blocks[i], grid, x);
    c.probes.offer(("vision.block" + std::to_string(i)).c_str(), x);
  }
  c.kernels.rms_norm({features, x, weights.norm, norm_epsilon});
  c.probes.offer("vision.encoder", features);
}

}  // namespace cedar::vision
