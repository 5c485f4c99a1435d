// What units have in common: how they refuse a message, and how they note their work.
#pragma once

#include <string>

#include "runtime/stage/unit.hpp"

namespace cedar::stage {

inline error unexpected(const char* unit, const flow::message& message) {
  return {errc::malformed,
          std::string(unit) + " got a message it does not take: " + std::string(kind_of(message))};
}

/// Work on the step that begins now; `arrived`: its first input.
inline unit_work work_of(const flow::step_table& table, unit_time arrived) {
  unit_work work;
  work.step = table.step;
  work.rows = table.rows_count();
  work.decoder_rows = table.decoder_count();
  work.first_arrival = arrived;
  work.begin = unit_time::clock::now();
  return work;
}

}  // namespace cedar::stage
