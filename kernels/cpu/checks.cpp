#include "kernels/cpu/internal/checks.hpp"

#include "kernels/base/check.hpp"

namespace cedar::kernels::cpu {

void refuse_partial_block(std::size_t count) {
  throw defect("a row of this format is a multiple of 32, not " + std::to_string(count) + " more");
}

void require_columns(std::size_t columns) {
  CEDAR_REQUIRE(columns > 0, "a product needs columns");
}

}  // namespace cedar::kernels::cpu
