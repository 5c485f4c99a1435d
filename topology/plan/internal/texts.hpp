// Words and numbers that every rendering of a plan shares.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "topology/plan/plan.hpp"

namespace cedar::topology::internal {

/// 1234567 as "1,234,567".
std::string grouped(std::uint64_t number);
/// 1234.5 as "1,234.5": no decimals if there is none to show, else one.
std::string grouped(double number);
/// 20.1363 ms as "20.136".
std::string milliseconds(std::chrono::nanoseconds time);
/// "layers 0-5", "layer 3".
std::string layers_text(layer_range range);
/// What a unit holds: "layers 0-5", "tables of layers 1, 4", "".
std::string holds(const unit_plan& unit);

}  // namespace cedar::topology::internal
