// What a file claims of its links against what they were found to do.
//
// A link is slower than claimed if
//   its least round trip > 2 (latency + jitter + a probe's bytes by bandwidth, there and back) + 1
//   ms the largest frame takes, beyond that round trip,
//                        > 2 (its bytes by bandwidth) + jitter, there and back + that round trip
// A factor of two, because a plan is for choosing a cut, and a busy host or a shared network are
// within it. 1 ms, because a process that slept may have to wait for a processor; the least of
// several round trips, because it hardly ever has to all the time. The last round trip, because
// UCX asks whether a large frame may come. Whoever declares losses is not held to the bandwidth:
// what TCP makes of a lossy link is not its bandwidth. A direction that is not declared is taken
// to have the latency of the other.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/link_measurement.hpp"
#include "topology/plan/plan.hpp"

namespace cedar::topology {

/// Between two nodes, in both directions; measured by `from`.
struct measured_link {
  node_id from;
  node_id to;
  link_measurement found;
};

/// "front <-> back: tcp/lo, round trip 0.081 ms (least 0.062), Mbit/s there and back: 1 KiB 96 and
/// 102, 32 KiB 2400 and 2200, 1 MiB 11000 and 12000".
std::string to_string(const plan& planned, const measured_link& link);

/// How the link is slower than the file claims, with the numbers of both; none if it is not, or
/// the file claims nothing of it.
std::optional<std::string> slower_than_claimed(const plan& planned, const measured_link& link);

}  // namespace cedar::topology
