// How much of a long test a run is worth.
#pragma once

#include <string>
#include <vector>

namespace cedar::test {

/// Seeds, lengths or rounds of a case. Where the code under test is built with the address
/// sanitizer, an eighth, at least one: that makes a run some 25 times as long, and judges memory,
/// not values.
int seeds_count(int of_a_release) noexcept;

/// Of the placements that a case goes through. With the address sanitizer two of them, every call
/// the next two, so that the cases of a program together see all.
std::vector<std::string> placements_of(const std::vector<std::string>& of_a_release);

}  // namespace cedar::test
