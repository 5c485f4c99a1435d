// cedar::error <-> caf::error, the only place where the two meet.
#pragma once

#include <caf/all.hpp>
#include <exception>

#include "runtime/base/result.hpp"

namespace cedar::actors {

caf::error to_caf(const error& what);

/// A foreign caf::error becomes errc::io (or timeout, peer_lost) with CAF's rendering as text.
error from_caf(const caf::actor_system& system, const caf::error& what);

/// What escaped from a handler, as errc::defect: nobody below an actor catches.
error defect_of(const std::exception_ptr& thrown);

}  // namespace cedar::actors
