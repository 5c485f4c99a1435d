#include "kernels/cuda/handles/device.hpp"

#include <string>

#include "kernels/base/check.hpp"

namespace cedar::kernels::cuda {

void require_same(const device_ref& one, const device_ref& other, const char* what) {
  CEDAR_REQUIRE(one.api == other.api && one.index == other.index,
                std::string(what) + " belong to devices " + std::to_string(one.index) + " and " +
                    std::to_string(other.index));
}

}  // namespace cedar::kernels::cuda
