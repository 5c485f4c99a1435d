// How a node's units get their edges, again and again: connections, dead units, an epoch.
#include <algorithm>
#include <limits>

#include "actors/error_bridge.hpp"
#include "topology/launch/edge_ends.hpp"
#include "topology/launch/node_runtime.hpp"

namespace cedar::topology {

namespace {

/// Longest wait for a connection that is dropped here to be gone.
constexpr std::chrono::seconds part_deadline{5};

}  // namespace

/// Nodes that exchange messages, and the client with everybody: it supervises.
bool node_runtime::peers_with(node_id other) const {
  if (other == settings_.self) return false;
  const node_id client = plan_.client().id;
  return other == client || settings_.self == client ||
         plan_.traffic(settings_.self, other).messages > 0 ||
         plan_.traffic(other, settings_.self).messages > 0;
}

void node_runtime::peer_event(node_id peer, const error* lost) {
  bool told = false;
  epoch_id epoch;
  {
    const std::scoped_lock lock(mutex_);
    sought_.erase(peer);
    if (lost == nullptr) {
      up_.insert(peer);
      lost_.erase(peer);
    } else {
      up_.erase(peer);
      lost_.insert_or_assign(peer, *lost);
      told = !parting_.contains(peer);
    }
    epoch = epoch_;
  }
  changed_.notify_all();
  if (told) settings_.events.on_peer_lost(peer, *lost, epoch);
}

result<void> node_runtime::connect_peers(const std::vector<std::string>& addresses,
                                         epoch_id epoch) {
  const std::chrono::milliseconds deadline = plan_.deadlines().start;
  std::vector<node_id> awaited;
  for (const node_plan& node : plan_.nodes())
    if (peers_with(node.id)) awaited.push_back(node.id);
  std::unique_lock lock(mutex_);
  for (const node_id peer : awaited) {
    if (up_.contains(peer)) continue;
    lost_.erase(peer);
    if (settings_.self < peer && sought_.insert(peer).second)
      port_->connect(peer, addresses.at(peer.value), deadline);
  }
  const auto missing = [&] {
    return std::ranges::find_if(awaited, [&](node_id id) { return !up_.contains(id); });
  };
  const bool settled = changed_.wait_for(lock, deadline, [&] {
    return missing() == awaited.end() || !lost_.empty() || epoch < oldest_epoch_;
  });
  if (!lost_.empty()) {
    const auto& [peer, reason] = *lost_.begin();
    return fail(reason.with("node '" + plan_[peer].name + "'"));
  }
  if (epoch < oldest_epoch_) return fail(errc::cancelled, "wiring was given up");
  if (!settled)
    return fail(errc::timeout, "node '" + plan_[*missing()].name + "' did not connect within " +
                                   std::to_string(deadline.count()) + " ms (deadlines_ms.start)");
  return {};
}

bool node_runtime::reaches(node_id peer) const {
  const std::scoped_lock lock(mutex_);
  return up_.contains(peer);
}

result<link_measurement> node_runtime::measure(node_id peer,
                                               std::chrono::steady_clock::time_point until) {
  return port_->measure(peer, until);
}

void node_runtime::give_up_measuring() {
  if (port_) port_->abandon();
}

void node_runtime::give_up_wiring() {
  {
    const std::scoped_lock lock(mutex_);
    oldest_epoch_.value = std::numeric_limits<std::uint32_t>::max();
  }
  changed_.notify_all();
}

result<void> node_runtime::part(const std::vector<node_id>& peers, epoch_id epoch) {
  std::unique_lock lock(mutex_);
  oldest_epoch_ = std::max(oldest_epoch_, epoch);
  parting_.insert(peers.begin(), peers.end());
  lock.unlock();
  changed_.notify_all();
  const std::scoped_lock none_wires(wiring_);
  if (port_)
    for (const node_id peer : peers)
      port_->disconnect(peer, {errc::peer_lost, "node '" + plan_[peer].name + "' is given up"});
  lock.lock();
  const bool gone = changed_.wait_for(lock, part_deadline, [&] {
    return std::ranges::none_of(
        peers, [&](node_id peer) { return up_.contains(peer) || sought_.contains(peer); });
  });
  parting_.clear();
  if (!gone) return fail(errc::timeout, "a connection that was dropped is not gone");
  return {};
}

actors::packet_sink node_runtime::sink_of(unit_id unit, node_id node) {
  if (node != settings_.self) return links_.at(node);
  return actor_of(unit);
}

actors::unit_actor node_runtime::actor_of(unit_id unit) const {
  if (const auto found = units_.find(unit); found != units_.end()) return found->second;
  return scheduler_;
}

bool node_runtime::has_ended(const actors::unit_actor& actor) {
  const caf::scoped_actor self{system_};
  self->monitor(actor);
  bool ended = false;
  self->receive([&](const caf::down_msg&) { ended = true; },
                caf::after(std::chrono::milliseconds(0)) >> [] {});
  return ended;
}

result<void> node_runtime::revive_units() {
  for (const unit_id id : plan_[settings_.self].units)
    if (has_ended(actor_of(id)))
      if (const result<void> spawned = spawn_unit(plan_[id]); !spawned) return spawned;
  return {};
}

/// A unit answers when it has done what it is at.
result<void> node_runtime::bind_unit(unit_id unit, epoch_id epoch) {
  auto ends = edge_ends(plan_, unit, settings_.fingerprint,
                        [this](unit_id other, node_id node) { return sink_of(other, node); });
  const caf::scoped_actor self{system_};
  result<void> bound;
  self->request(actor_of(unit), plan_.deadlines().step, actors::bind_atom::value,
                actors::edge_ends_ref(
                    std::make_shared<const std::vector<actors::edge_end>>(std::move(ends))),
                epoch.value)
      .receive([](actors::bound_atom) {},
               [&](const caf::error& what) { bound = fail(actors::from_caf(system_, what)); });
  if (!bound && bound.error().code == errc::timeout)
    bound.error().message += " (deadlines_ms.step)";
  return bound;
}

result<void> node_runtime::wire(const std::vector<std::string>& addresses, epoch_id epoch) {
  const std::scoped_lock one_at_a_time(wiring_);
  {
    const std::scoped_lock lock(mutex_);
    if (epoch < oldest_epoch_) return fail(errc::cancelled, "wiring was given up");
    epoch_ = epoch;
  }
  if (port_) {
    if (const result<void> connected = connect_peers(addresses, epoch); !connected)
      return connected;
    for (const node_plan& node : plan_.nodes())
      if (peers_with(node.id) && !links_.contains(node.id))
        links_[node.id] = actors::spawn_link(system_, *port_, node.id);
  }
  if (const result<void> revived = revive_units(); !revived) return revived;
  for (const unit_id id : plan_[settings_.self].units)
    if (const result<void> bound = bind_unit(id, epoch); !bound)
      return fail(bound.error().with("unit '" + plan_[id].name + "'"));
  if (switchboard_)
    switchboard_->connect(crossing_edges(
        plan_, settings_.self, [this](unit_id unit, node_id node) { return sink_of(unit, node); }));
  return {};
}

}  // namespace cedar::topology
