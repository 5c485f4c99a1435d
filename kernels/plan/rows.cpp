#include "kernels/plan/rows.hpp"

#include <string>

#include "kernels/base/check.hpp"
#include "kernels/plan/rounding.hpp"

namespace cedar::kernels::plan {

parts_plan plan_parts(std::size_t rows, std::size_t parts) {
  const std::size_t blocks = quotient_up<std::size_t>(parts, part_threads);
  CEDAR_REQUIRE(rows > 0 && rows <= grid_x_max && blocks > 0 && blocks <= grid_y_max,
                std::to_string(rows) + " rows of " + std::to_string(parts) +
                    " parts are no grid of a device");
  return {static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(blocks)};
}

}  // namespace cedar::kernels::plan
