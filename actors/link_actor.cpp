#include "actors/link_actor.hpp"

#include "runtime/wire/decode.hpp"
#include "runtime/wire/encode.hpp"

namespace cedar::actors {

link_actor spawn_link(caf::actor_system& system, transport::port& port, node_id node) {
  return system.spawn([&port, node](link_actor::pointer) -> link_actor::behavior_type {
    return {[&port, node](const packet_ref& packet) {
      port.send(node, wire::encode(packet->head, packet->body));
    }};
  });
}

void switchboard::connect(std::map<edge_id, switchboard_entry> entries) {
  const std::scoped_lock lock(mutex_);
  entries_ = std::move(entries);
}

void switchboard::on_frame(node_id from, flow::received_frame frame) {
  result<wire::decoded> decoded = wire::decode(std::move(frame));
  if (!decoded) return events_.on_bad_frame(from, decoded.error());
  const edge_id edge = decoded->envelope.edge;
  const bool credit = std::holds_alternative<flow::credit>(decoded->message);
  packet_sink unit;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(edge);
    if (found != entries_.end() && found->second.peer == from && found->second.inbound != credit)
      unit = found->second.unit;
  }
  if (!unit)
    return events_.on_bad_frame(from,
                                {errc::malformed, "a frame on edge " + std::to_string(edge.value) +
                                                      ", which does not come from that node"});
  caf::anon_send(unit, packet_ref(std::make_shared<const flow::stamped_message>(
                           flow::stamped_message{decoded->envelope, std::move(decoded->message)})));
}

}  // namespace cedar::actors
