// Operations over rows whose threads have a part of a row each: an element, a pair, a group.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cedar::kernels::plan {

/// Threads of a block, whatever the row: part of what such kernels are compiled to.
inline constexpr std::uint32_t part_threads = 128;
/// Largest grid, on every architecture.
inline constexpr std::size_t grid_x_max = 0x7fffffff;
inline constexpr std::size_t grid_y_max = 0xffff;
inline constexpr std::size_t grid_z_max = 0xffff;

struct parts_plan {
  std::uint32_t rows = 0;  ///< grid x
  std::uint32_t blocks = 0;  ///< grid y: of a row
};

/// rows, parts > 0. Which thread has which part does not depend on how many rows there are. Defect:
/// more than a grid has.
parts_plan plan_parts(std::size_t rows, std::size_t parts);

}  // namespace cedar::kernels::plan
