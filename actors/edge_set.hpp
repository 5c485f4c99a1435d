// All edge ends of one unit: numbering, credit and delivery, so that a unit only sees messages.
//
// Not an actor and not thread-safe: it lives in the state of the actor that owns the unit.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "actors/interfaces.hpp"
#include "runtime/base/trace.hpp"

namespace cedar::actors {

class edge_set {
 public:
  /// Hands a packet to the other side of an edge.
  using deliver_fn = std::function<void(const packet_sink& to, packet_ref packet)>;

  /// `trace` outlives the set.
  edge_set(trace_recorder& trace, deliver_fn deliver)
      : trace_(trace), deliver_(std::move(deliver)) {}

  /// From now on these edges and no others, at the beginning of `epoch` (newer than that of the
  /// last call, else a defect).
  void bind(const std::vector<edge_end>& ends, epoch_id epoch);

  /// Sends a message on every outbound edge that carries its kind (blocks of rows: of its layer, to
  /// its reader, of its slice), those to the drafter only if it `concerns_drafter`; it may wait
  /// there for credit. A message that no edge carries is a defect.
  void send(const flow::message& message, bool concerns_drafter = true);

  /// Judges an arrived packet. Credit is dealt with here. A fresh message is returned, to be used
  /// and then released with consumed_step() or consumed_now(). Errors: as inbound_edge::accept.
  result<std::optional<flow::message>> receive(const packet_ref& packet);

  /// The inputs of a step are used up: their credit goes back.
  void consumed_step(step_id step);
  /// The packet that was received last is used up.
  void consumed_now();

  /// The name of an outbound edge that carries `kind` and has a message waiting for credit; null if
  /// every one has found it.
  const std::string* waiting_edge(std::string_view kind) const;

  /// Edges of `kind` that end here.
  std::size_t inbound_count(std::string_view kind) const;

 private:
  struct outbound_end {
    flow::outbound_edge edge;
    std::string carries;
    std::uint32_t layer;
    std::uint32_t reader;
    std::uint32_t slice;
    bool to_drafter;
    packet_sink peer;
  };
  struct inbound_end {
    flow::inbound_edge edge;
    std::string carries;
    packet_sink peer;
  };
  struct held_input {
    edge_id edge;
    epoch_id epoch;
    std::uint64_t bytes = 0;
    step_id step;
  };

  void flush(outbound_end& end);
  void release(const held_input& input);

  trace_recorder& trace_;
  deliver_fn deliver_;
  std::map<edge_id, outbound_end> outbound_;
  std::map<edge_id, inbound_end> inbound_;
  std::vector<held_input> held_;
  std::optional<epoch_id> epoch_;
};

}  // namespace cedar::actors
