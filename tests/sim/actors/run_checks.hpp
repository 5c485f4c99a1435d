// What runs of a simulation do and are held to, whatever the topology has besides stages.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/actors/oracle.hpp"
#include "tests/sim/actors/simulation.hpp"

namespace cedar::test {

/// Nothing went wrong, every credit is back, and no unit holds anything of a request.
void check_nothing_left(const simulation& sim);

/// Every request ended with the expected rows, bit for bit.
void check_answers(const simulation& sim, const std::vector<request_id>& ids,
                   const expected_answers& expected);

/// Lets the unit stand still most of the time while all others go on; then runs to the end.
void run_with_a_laggard(simulation& sim, const std::string& unit);

/// Runs to the end and cancels every other request, the first one included, each after fewer than
/// `actions_max` actions.
void run_and_cancel(simulation& sim, const std::vector<request_id>& ids, std::uint64_t seed,
                    std::size_t actions_max);

}  // namespace cedar::test
