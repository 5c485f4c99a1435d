// From the encoder's features to embeddings of the text model: cells of downsample x downsample
// patches side by side (the last ones filled up with zeros), then w2 * gelu(w1 * z + b1) + b2 with
// the exact GELU (DeepSeek-V4.1-Flash reference code, inference/vision.py).
#pragma once

#include "runtime/vision/encoder.hpp"

namespace cedar::vision {

/// Cells in reading order: cells [rows * columns of cells, w * downsample^2], element c *
/// downsample^2 + y * downsample + x of a cell is channel c of its patch (y, x); zero beyond the
/// grid. features [grid.count(), w].
void gather_cells(const patch_grid& grid, std::uint32_t downsample,
                  matrix_view<const bf16> features, matrix_view<bf16> cells);

/// Cells along a side of `patches` patches.
constexpr std::uint32_t cells_along(std::uint32_t patches, std::uint32_t downsample) noexcept {
  return (patches + downsample - 1) / downsample;
}

/// aligned [cells, d], one row for each cell. Offers the tap "vision.aligned".
void align(const context& c, const aligner_weights& weights, const patch_grid& grid,
           matrix_view<const bf16> features, matrix_view<bf16> aligned);

}  // namespace cedar::vision
