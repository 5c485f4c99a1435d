// Words and numbers that every rendering of a plan shares.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

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
/// {0, 1, 2, 3, 8}: "0-3,8".
std::string ranges_text(const std::vector<std::uint32_t>& numbers);
/// "expert 3", "experts 0-3,8".
std::string experts_text(const std::vector<std::uint32_t>& experts);
/// "row 3", "rows 1000-1999": of a table, as a file has them.
std::string rows_text(std::uint64_t first, std::uint64_t last);
/// What a unit holds: "layers 0-5", "tables of layers 1, 4", "rows 0-999 of the table of layer 1",
/// "experts 0-3 of layers 0-5", "index keys of layer 6, part 1 of 3", "".
std::string holds(const unit_plan& unit);

}  // namespace cedar::topology::internal
