#include "runtime/vision/aligner.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"

namespace cedar::vision {

void gather_cells(const patch_grid& grid, std::uint32_t downsample,
                  matrix_view<const bf16> features, matrix_view<bf16> cells) {
  const std::size_t columns = cells_along(grid.columns, downsample);
  const std::size_t area = std::size_t{downsample} * downsample;
  CEDAR_REQUIRE(features.rows == grid.count(), "a row for every patch of the grid");
  CEDAR_REQUIRE(cells.rows == columns * cells_along(grid.rows, downsample) &&
                    cells.cols == features.cols * area,
                "a row for every cell, its patches side by side");
  for (std::size_t cell = 0; cell < cells.rows; ++cell) {
    bf16* const out = cells.row_data(cell);
    for (std::size_t inside = 0; inside < area; ++inside) {
      const std::size_t y = cell / columns * downsample + inside / downsample;
      const std::size_t x = cell % columns * downsample + inside % downsample;
      const bool exists = y < grid.rows && x < grid.columns;
      const bf16* patch = exists ? features.row_data(y * grid.columns + x) : nullptr;
      for (std::size_t channel = 0; channel < features.cols; ++channel)
        out[channel * area + inside] = exists ? patch[channel] : bf16{};
    }
  }
}

void align(const context& c, const aligner_weights& weights, const patch_grid& grid,
           matrix_view<const bf16> features, matrix_view<bf16> aligned) {
  const kernels::arena::mark mark(c.scratch);
  const std::uint32_t downsample = c.config.downsample;
  const auto cells = c.scratch.take<bf16>(aligned.rows, features.cols * downsample * downsample);
  const auto hidden = c.scratch.take<bf16>(aligned.rows, weights.w1.weight.rows);
  gather_cells(grid, downsample, features, cells);
  c.kernels.linear_bf16({hidden, cells, weights.w1.weight, weights.w1.bias});
  c.kernels.gelu({hidden, hidden});
  c.kernels.linear_bf16({aligned, hidden, weights.w2.weight, weights.w2.bias});
  c.probes.offer("vision.aligned", aligned);
}

}  // namespace cedar::vision
