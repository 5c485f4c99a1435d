#include "actors/link_actor.hpp"

#include "runtime/wire/decode.hpp"
#include "runtime/wire/encode.hpp"

namespace cedar::actors {

namespace {

/// An actor without a mailbox: what is sent to it is done by the sender's thread.
class link final : public caf::monitorable_actor {
 public:
  link(caf::actor_config& config, transport::port& port, node_id node)
      : caf::monitorable_actor(config), port_(port), node_(node) {}

  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* context) override {
    if (handle_system_message(*what, context, false) || getf(is_cleaned_up_flag)) return;
    const auto& content = what->content();
    if (!content.match_elements<packet_ref>()) return bounce(what);
    const auto& packet = content.get_as<packet_ref>(0);
    port_.send(node_, wire::encode(packet->head, packet->body));
  }

 private:
  transport::port& port_;
  const node_id node_;
};

}  // namespace

link_actor spawn_link(caf::actor_system& system, transport::port& port, node_id node) {
  caf::actor_config config;
  return caf::actor_cast<link_actor>(caf::make_actor<link, caf::strong_actor_ptr>(
      system.next_actor_id(), system.node(), &system, config, port, node));
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
