// The control plane between processes: what the client and its nodes say to each other through
// CAF's middleman. No token ever waits for it.
//
//   node -> controller   hello(node, identity of the program) -> nonce
//   node -> controller   join(node, proof, agent) -> time that the start may take
//   node -> controller   fault(where, code, text, epoch)
//   node -> controller   lost(node, the node that it lost, code, text, epoch)
//   controller -> agent  deploy(deployment) -> deployed         load units, open the port
//   controller -> agent  wire(addresses, epoch) -> bound        connect peers, bind edges
//   controller -> agent  measure(node) -> link_measurement      the link to a connected peer
//   controller -> agent  part(nodes, epoch) -> parted           before a wiring: drop these peers
//   controller -> agent  report -> node_report                  trace and links
//   controller -> agent  usage -> node_usage                    what passed its edges, what its
//                                                               units hold
//   controller -> agent  stop
//   controller -> agent  dismiss                                end, and come back
//   client -> controller forget(agent)                          its successor may join
// A wiring begins an epoch; the client counts them from 1. What a node says of an older one is
// void, and a wiring of an older one than the last part() told is given up.
// Every request carries a deadline. Both sides prove that they know the secret: the node by its
// proof over the controller's nonce, the controller by the data plane's handshake.
// The hello has the same form in every version of cedar: programs that differ must be able to say
// so.
#pragma once

#include <caf/all.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"
#include "runtime/base/link_measurement.hpp"
#include "runtime/base/trace.hpp"

namespace cedar {

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, link_rate& x) {
  return f(caf::meta::type_name("link_rate"), x.bytes, x.there, x.back);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, link_measurement& x) {
  return f(caf::meta::type_name("link_measurement"), x.round_trip, x.round_trip_least, x.rates,
           x.transport);
}

}  // namespace cedar

namespace cedar::topology {

using hello_atom = caf::atom_constant<caf::atom("hello")>;
using join_atom = caf::atom_constant<caf::atom("join")>;
using fault_atom = caf::atom_constant<caf::atom("fault")>;
using deploy_atom = caf::atom_constant<caf::atom("deploy")>;
using wire_atom = caf::atom_constant<caf::atom("wire")>;
using lost_atom = caf::atom_constant<caf::atom("lost")>;
using measure_atom = caf::atom_constant<caf::atom("measure")>;
using part_atom = caf::atom_constant<caf::atom("part")>;
using parted_atom = caf::atom_constant<caf::atom("parted")>;
using dismiss_atom = caf::atom_constant<caf::atom("dismiss")>;
using forget_atom = caf::atom_constant<caf::atom("forget")>;
using report_atom = caf::atom_constant<caf::atom("report")>;
using usage_atom = caf::atom_constant<caf::atom("usage")>;
using stop_atom = caf::atom_constant<caf::atom("stop")>;

/// What a node is to become. It plans the same text for the same model, so ids agree.
struct deployment {
  std::string file;  ///< of the topology, for texts and relative paths
  std::string text;  ///< of the topology
  std::string model;  ///< checkpoint that overrides the file's, or empty
  std::uint64_t fingerprint = 0;  ///< of the client's model
  std::uint64_t trace_events_max = 0;  ///< 0: no trace
  bool emulate_links = false;
  std::string draft;  ///< setting that overrides the file's, or empty
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, deployment& x) {
  return f(caf::meta::type_name("deployment"), x.file, x.text, x.model, x.fingerprint,
           x.trace_events_max, x.emulate_links, x.draft);
}

/// One recorded event (trace_event).
struct traced {
  std::uint8_t kind = 0;
  std::string track;
  std::uint64_t step = 0;
  std::int64_t begin_us = 0;
  std::int64_t duration_us = 0;
  std::uint64_t bytes = 0;
  std::uint32_t rows = 0;
  std::uint32_t decoder_rows = 0;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, traced& x) {
  return f(caf::meta::type_name("traced"), x.kind, x.track, x.step, x.begin_us, x.duration_us,
           x.bytes, x.rows, x.decoder_rows);
}

struct link_report {
  std::string peer;
  std::string transport;  ///< what UCX chose, e.g. "tcp/lo"
  std::uint64_t frames_sent = 0;
  std::uint64_t bytes_sent = 0;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, link_report& x) {
  return f(caf::meta::type_name("link_report"), x.peer, x.transport, x.frames_sent, x.bytes_sent);
}

struct edge_report {
  std::string edge;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t waited_us = 0;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, edge_report& x) {
  return f(caf::meta::type_name("edge_report"), x.edge, x.messages, x.bytes, x.waited_us);
}

/// What a unit holds (cache_bytes).
struct cache_report {
  std::string unit;
  std::uint64_t pages = 0;
  std::uint64_t kept = 0;
  std::uint64_t rings = 0;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, cache_report& x) {
  return f(caf::meta::type_name("cache_report"), x.unit, x.pages, x.kept, x.rings);
}

/// What a unit had to do with Engram's tables (engram_counts).
struct engram_report {
  std::string unit;
  std::uint64_t rows_sent = 0;
  std::uint64_t steps = 0;
  std::uint64_t late = 0;
  std::uint64_t waited_us = 0;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, engram_report& x) {
  return f(caf::meta::type_name("engram_report"), x.unit, x.rows_sent, x.steps, x.late,
           x.waited_us);
}

struct node_usage {
  std::vector<edge_report> edges;
  std::vector<cache_report> caches;
  std::vector<engram_report> engram;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, node_usage& x) {
  return f(caf::meta::type_name("node_usage"), x.edges, x.caches, x.engram);
}

struct node_report {
  std::string node;
  std::vector<traced> events;
  std::vector<link_report> links;
  std::vector<std::string> tensors;  ///< whose bytes this node has mapped
  std::vector<engram_report> engram;  ///< by unit, of those that have to do with it
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, node_report& x) {
  return f(caf::meta::type_name("node_report"), x.node, x.events, x.links, x.tensors, x.engram);
}

using agent_actor = caf::typed_actor<
    caf::replies_to<deploy_atom, deployment>::with<std::string>,  ///< the node's
                                                                  ///< data address
    caf::replies_to<wire_atom, std::vector<std::string>, std::uint32_t>::with<actors::bound_atom>,
    caf::replies_to<measure_atom, std::string>::with<link_measurement>,
    caf::replies_to<part_atom, std::vector<std::string>, std::uint32_t>::with<parted_atom>,
    caf::replies_to<report_atom>::with<node_report>, caf::replies_to<usage_atom>::with<node_usage>,
    caf::reacts_to<stop_atom>, caf::reacts_to<dismiss_atom>>;

using controller_actor = caf::typed_actor<
    caf::replies_to<hello_atom, std::string, std::vector<std::string>>::with<std::string>,
    caf::replies_to<join_atom, std::string, std::string, agent_actor>::with<std::uint64_t>,  ///< ms
    caf::reacts_to<fault_atom, std::string, std::uint8_t, std::string, std::uint32_t>,
    caf::reacts_to<lost_atom, std::string, std::string, std::uint8_t, std::string, std::uint32_t>,
    caf::reacts_to<forget_atom, caf::actor_addr>>;

/// What two programs must have in common to be nodes of one topology, an item each: version,
/// formats, arithmetic.
std::vector<std::string> program_identity();

/// CAF settings of every process of a topology: work sharing (an idle process sleeps), the
/// middleman where other processes are to be reached, our message types.
struct system_config : caf::actor_system_config {
  explicit system_config(bool remote);
};

}  // namespace cedar::topology
