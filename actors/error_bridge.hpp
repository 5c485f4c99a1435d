// cedar::error <-> caf::error, the only place where the two meet.
#pragma once

#include <caf/all.hpp>

#include "runtime/base/result.hpp"

namespace cedar::actors {

caf::error to_caf(const error& what);

/// A foreign caf::error becomes errc::io (or timeout, peer_lost) with CAF's rendering as text.
error from_caf(const caf::actor_system& system, const caf::error& what);

}  // namespace cedar::actors
