// Why no unit of a plan waits for ever.
//
// Claim: if (a) the edges that neither leave nor enter the scheduler form no cycle, and (b) every
// edge's window holds at least one message of the largest size, then every step that the scheduler
// starts ends. Proof: take the oldest unfinished step s. On each edge the messages before those of
// s belong to finished steps or to s itself, so they have been or will be consumed without waiting
// for anything newer, and when a consumer holds nothing the whole window is granted again
// (flow/edge.hpp): by (b) each message of s gets its credit. By induction along the order that (a)
// provides, every unit gets all its inputs of s and sends its outputs; the head's proposal ends s.
// The scheduler takes proposals and taps whatever else it waits for, so edges into it never block.
// Beyond that, windows of `steps_in_flight` messages mean that no unit waits for credit at all,
// except for one that is already on its way: (c).
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace cedar::topology::internal {

/// An edge as the proof sees it; unit 0..units_count-1.
struct proof_edge {
  std::uint32_t producer = 0;
  std::uint32_t consumer = 0;
  std::string name;
  std::uint64_t message_bytes_max = 0;
  std::uint32_t window_messages = 0;
  std::uint64_t window_bytes = 0;
};

/// Checks (a), (b) and (c). Returns an order of the units in which every edge that does not touch
/// `scheduler` points forward. Error: the cycle by the names of its edges, or the edges whose
/// window is too small.
tl::expected<std::vector<std::uint32_t>, std::string> prove_no_deadlock(
    std::uint32_t units_count, std::uint32_t scheduler, std::uint32_t steps_in_flight,
    const std::vector<proof_edge>& edges);

}  // namespace cedar::topology::internal
