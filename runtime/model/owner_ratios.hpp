// The ratios of all owners of global KV together.
#pragma once

#include <cstdint>

#include "runtime/model/schedule.hpp"

namespace cedar::model {

/// Least common multiple of the ratios of all owners; 1 if there are none. So many positions fill
/// whole entries at every owner.
std::uint32_t ratios_lcm(const schedule& schedule);

}  // namespace cedar::model
