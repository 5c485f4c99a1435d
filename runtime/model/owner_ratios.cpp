#include "runtime/model/owner_ratios.hpp"

#include <numeric>

namespace cedar::model {

std::uint32_t ratios_lcm(const schedule& schedule) {
  std::uint32_t out = 1;
  for (std::uint32_t layer = 0; layer < schedule.layers(); ++layer)
    if (schedule[layer].mode == layer_mode::full) out = std::lcm(out, schedule[layer].ratio);
  return out;
}

}  // namespace cedar::model
