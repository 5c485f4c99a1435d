// Launches of kernels whose threads have a part of a row each.
#pragma once

#include "kernels/cuda/device/launch_shape.hpp"
#include "kernels/plan/rows.hpp"

namespace cedar::kernels::cuda {

/// Grid: x over the rows, y over the parts of a row.
inline launch_shape parts_shape(const char* kernel, std::size_t rows, std::size_t parts) {
  const plan::parts_plan grid = plan::plan_parts(rows, parts);
  return {kernel, {grid.rows, grid.blocks}, plan::part_threads, 0};
}

}  // namespace cedar::kernels::cuda
