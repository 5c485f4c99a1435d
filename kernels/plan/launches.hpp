// What operations cost a device beside their work: the kernels that they queue.
#pragma once

#include <cstdint>
#include <string_view>

namespace cedar::kernels::plan {

/// Kernels that an operation of kernels::backend queues (ops/operations.hpp has the names),
/// whatever its arguments. Every suite on the emulated device holds its backend to it.
constexpr std::uint32_t launches_of(std::string_view operation) {
  if (operation == "hc_coefficients") return 2;
  if (operation == "hc_transition") return 3;
  return 1;
}

}  // namespace cedar::kernels::plan
