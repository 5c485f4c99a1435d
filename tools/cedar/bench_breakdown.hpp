// Where the time of a step goes: operations, and what lies between them, as rows and as a table.
#pragma once

#include <cstdint>
#include <string>

#include "tools/cedar/bench_report.hpp"
#include "tools/cedar/timed_backend.hpp"

namespace cedar::tools {

struct breakdown {
  double seconds = 0;  ///< of everything, operations and what lies between
  double steps = 1;  ///< that took them
};

/// Appends a row for each operation, "PREFIX: OPERATION", for what lies between two operations,
/// "PREFIX: between A -> B", and for the rest: before the first operation and after the last one.
/// Times are those of a step. numbers: calls and bytes of a step, share of all time, GBps. Returns
/// the share of the time that was spent in operations.
double add_breakdown(bench_report& to, const std::string& prefix, const timed_backend& timed,
                     const breakdown& whole);

/// Rows of add_breakdown() as a table; those below `least` of the time together in a line.
void print_breakdown(const bench_report& report, const std::string& prefix, double least);

}  // namespace cedar::tools
