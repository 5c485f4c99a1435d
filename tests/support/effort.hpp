// How much of a long test a run is worth.
#pragma once

namespace cedar::test {

/// Seeds, lengths or rounds of a case. Where the code under test is built with the address
/// sanitizer, an eighth, at least one: that makes a run some 25 times as long, and judges memory,
/// not values.
int seeds_count(int of_a_release) noexcept;

}  // namespace cedar::test
