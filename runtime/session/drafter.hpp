// Something that guesses what comes next.
#pragma once

#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/session/step_scheduler.hpp"

namespace cedar::session {

class drafter {
 public:
  virtual ~drafter() = default;

  /// `outcome` settled `table`: the answers to its orders, each once, in any order. Called for
  /// every step, in order, so that state of requests can follow the rows that stand.
  virtual result<std::vector<flow::draft>> draft_after(const flow::step_table& table,
                                                       const step_outcome& outcome) = 0;
};

}  // namespace cedar::session
