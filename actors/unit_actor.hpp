// A unit under CAF: packets in, packets out. All decisions are the unit's (runtime/stage/unit.hpp).
//
// A unit that computes is spawned detached: it has a thread of its own, so that a long step never
// keeps links and the scheduler from running.
#pragma once

#include <memory>
#include <string>

#include "actors/interfaces.hpp"
#include "runtime/base/trace.hpp"
#include "runtime/stage/unit.hpp"

namespace cedar::actors {

struct unit_config {
  std::string name;
  std::unique_ptr<stage::unit> unit;
  bool computes = false;  ///< spawn with a thread of its own
  fault_sink supervisor;  ///< hears errors of steps and edges
  trace_recorder* trace = nullptr;  ///< outlives the actor
};

unit_actor spawn_unit(caf::actor_system& system, unit_config config);

}  // namespace cedar::actors
