// Why no unit of a plan waits for ever.
//
// Claim: every step that the scheduler starts ends, if
//   (a) the edges that neither touch the scheduler nor carry requests or feeds form no cycle;
//   (b) every edge's window holds at least one message of the largest size;
//   (d) every request has a reply edge back, and asks a unit from which streams lead to the one
//       that asks, or one that takes nothing but requests and feeds.
// Streams: take the oldest unfinished step s. On each edge the messages before those of s belong to
// finished steps or to s itself, so they have been or will be consumed without waiting for anything
// newer, and when a consumer holds nothing the whole window is granted again (flow/edge.hpp): by
// (b) each message of s gets its credit. By induction along the order that (a) provides, every unit
// gets all its inputs of s and sends its outputs; the head's proposal ends s. The scheduler takes
// proposals and taps whatever else it waits for, so edges into it never block.
// Requests: a unit that works on s may wait for a reply. By (d) the unit that it asks stands before
// it, and has made what s needs of it, because inputs of s came from there. That unit answers from
// its state as soon as the request is there, even while it waits for a reply itself, and needs no
// input of a newer step for it. The reply's credit is reserved: of an edge at most one request is
// unanswered, and whoever asks has taken the reply before, and given its credit back on the way
// that the next request takes; so the reply finds a whole window, which by (b) holds it. The same
// is true of the request, whose credit leaves before the reply. A unit that takes nothing but
// requests (a slice of experts) answers them from what they bring; several of them may be asked at
// once.
// Feeds: an indexer answers a request of s from what it has been fed up to s, and holds it until
// that is there. What feeds it sends its feed of s before it asks, or before what leads, along
// streams, to whoever asks: so feed and table of s have been sent, and need nothing newer. It takes
// both whatever else it waits for, step by step, and gives their credit back then; a verdict that
// comes before its step waits for it. So it may fall behind like the drafter, by as much.
// The drafter: nothing that ends a step comes from it, so it may fall behind, and its credit bounds
// how far. Its inputs of a step are used up with the step's verdict, which needs no more than them;
// so by the same induction it goes on with the oldest step that it has not settled. The scheduler
// starts no step while a verdict or an order of drafts waits for credit: then at most a window's
// steps wait at the drafter, and as many are in flight, which is what its edges' queues hold. What
// it answers ends at the scheduler.
// Images: the scheduler sends those that begin in a step before its table, and begins no other
// while one waits for credit. Vision takes an image whenever it comes and waits for nothing else
// then, so by (b) each gets its credit, and a table that waits for its images at vision gets them.
// Tables and verdicts of steps without images may find vision behind, like the drafter: it gives
// the credit of both back when it has both, which needs nothing else, so its queues hold as much as
// the drafter's. Beyond that, (c): windows of the messages of `steps_in_flight` steps mean that no
// unit waits for credit of a stream at all, except for one that is already on its way. Windows of
// requests and replies hold the messages of one step, since a unit works on one step at a time, or
// one message, where the next request follows from the reply (`messages_per_step`: of those that
// may be on their way at once).
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace cedar::topology::internal {

enum class edge_role : std::uint8_t {
  stream,  ///< sent when it is made
  request,  ///< sent while a unit works on a step; it then waits for the reply
  reply,
  feed,  ///< sent when it is made, to a unit that answers requests from it
  aside,  ///< taken when it comes, whatever its consumer waits for
};

/// An edge as the proof sees it; unit 0..units_count-1.
struct proof_edge {
  std::uint32_t producer = 0;
  std::uint32_t consumer = 0;
  std::string name;
  std::uint64_t message_bytes_max = 0;
  std::uint32_t window_messages = 0;
  std::uint64_t window_bytes = 0;
  edge_role role = edge_role::stream;
  std::uint32_t messages_per_step = 1;
};

/// Checks (a) to (d). Returns an order of the units in which every edge that does not touch
/// `scheduler`, and is no request, points forward. Error: the cycle by the names of its edges, the
/// requests that nobody could answer, or the edges whose window is too small.
tl::expected<std::vector<std::uint32_t>, std::string> prove_no_deadlock(
    std::uint32_t units_count, std::uint32_t scheduler, std::uint32_t steps_in_flight,
    const std::vector<proof_edge>& edges);

}  // namespace cedar::topology::internal
