// The system's map: every kind of actor, and the messages it takes.
//
//   packet_sink     anything that takes packets of data edges: units, the scheduler, links
//   unit_actor      a placed part of the model (vision, embedding, engram, stage, ...)
//   scheduler_actor the single authority on tokens; a packet_sink that also takes requests
//   link_actor      stands for a remote node: packets in, frames out
//   fault_sink      hears what went wrong, by name
// Data packets are immutable and shared; requests carry finite timeouts; nobody sends an
// un-credited packet (edge_set).
#pragma once

#include <caf/all.hpp>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/flow/edge.hpp"
#include "runtime/session/request.hpp"

namespace cedar::actors {

// SHARED: by the mailboxes of the packet's receivers and their unit, until the last one has used
// it.
using packet_ref = std::shared_ptr<const flow::stamped_message>;

using bind_atom = caf::atom_constant<caf::atom("bind")>;
using bound_atom = caf::atom_constant<caf::atom("bound")>;
using submit_atom = caf::atom_constant<caf::atom("submit")>;
using cancel_atom = caf::atom_constant<caf::atom("cancel")>;
using fail_atom = caf::atom_constant<caf::atom("fail")>;
using deadline_atom = caf::atom_constant<caf::atom("deadline")>;
using resume_atom = caf::atom_constant<caf::atom("resume")>;
using measure_atom = caf::atom_constant<caf::atom("measure")>;

using packet_sink = caf::typed_actor<caf::reacts_to<packet_ref>>;

/// What a unit could not do.
struct fault {
  std::string where;  ///< unit, edge or node
  error what;
  epoch_id epoch{};  ///< in which it happened
};
// SHARED: faults are sent to whoever supervises, in this process only.
using fault_ref = std::shared_ptr<const fault>;
using fault_sink = caf::typed_actor<caf::reacts_to<fault_ref>>;

/// One end of an edge at a unit: what it carries and who is at the other side.
struct edge_end {
  flow::edge_contract contract;
  bool outbound = false;  ///< messages leave here (credits arrive); else the reverse
  std::string carries;  ///< flow::kind_of() of its messages
  /// flow::row_block::layer of its blocks; 0 for other messages, and for what experts and indexers
  /// are asked and answer: their edges carry that of several layers.
  std::uint32_t layer = 0;
  std::uint32_t reader = 0;  ///< flow::row_block::reader of its blocks
  std::uint32_t slice = 0;  ///< flow::row_block::slice of its blocks
  bool to_drafter = false;  ///< outbound: the drafter takes them, which need not hear of all
  std::size_t queue_messages_max = 0;  ///< outbound: messages that may wait for credit
  packet_sink peer;  ///< gets the messages (outbound) or the credits (inbound)
};
// SHARED: by the bind message only.
using edge_ends_ref = std::shared_ptr<const std::vector<edge_end>>;

/// Binding begins an epoch (the second argument, newer than the one before): the edges are those
/// given and no others, all that the unit knew of earlier steps is void, and an earlier failure
/// with it. When all units of a pipeline have answered, messages of that epoch may be sent.
using unit_actor =
    packet_sink::extend<caf::replies_to<bind_atom, edge_ends_ref, std::uint32_t>::with<bound_atom>>;
using link_actor = packet_sink;

// SHARED: by the submit message only.
using requests_ref = std::shared_ptr<const std::vector<session::generation_request>>;
using request_ids_ref = std::shared_ptr<const std::vector<request_id>>;

using scheduler_actor =
    unit_actor::extend<caf::replies_to<submit_atom, requests_ref>::with<request_ids_ref>,
                       caf::reacts_to<cancel_atom, std::uint64_t>,  ///< a request_id's value
                       caf::reacts_to<fail_atom, fault_ref>,
                       caf::reacts_to<resume_atom>,  ///< after a failure: all units are bound again
                       caf::reacts_to<measure_atom>,  ///< before the first request
                       caf::reacts_to<deadline_atom>>;

}  // namespace cedar::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(cedar::actors::packet_ref)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(cedar::actors::fault_ref)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(cedar::actors::edge_ends_ref)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(cedar::actors::requests_ref)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(cedar::actors::request_ids_ref)
