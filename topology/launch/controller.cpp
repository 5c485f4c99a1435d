#include "topology/launch/controller.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "actors/error_bridge.hpp"
#include "topology/launch/secret.hpp"

namespace cedar::topology {

namespace {

/// Refusals that the client hears of; later ones are told to the node alone.
constexpr std::size_t refusals_told_max = 64;

struct controller_state {
  controller_settings settings;
  std::map<std::string, std::string> nonces;  ///< by node
  std::map<std::string, caf::actor_addr> joined;
  std::size_t refusals = 0;

  tl::unexpected<error> refuse(const std::string& why, errc code = errc::refused) {
    if (++refusals <= refusals_told_max) settings.on_refused(why);
    return fail(code, why);
  }

  result<std::string> hello(const std::string& node, const std::vector<std::string>& identity) {
    if (!settings.nodes.contains(node))
      return refuse("the topology expects no node '" + node + "'");
    const auto [own, other] = std::ranges::mismatch(settings.identity, identity);
    const auto text = [](const auto& at, const auto& all) {
      return at == all.end() ? std::string("nothing of the kind") : *at;
    };
    if (own != settings.identity.end() || other != identity.end())
      return refuse("node '" + node + "' has " + text(other, identity) + ", the client has " +
                    text(own, settings.identity) + "; run the same version of cedar on both");
    return nonces[node] = make_nonce();
  }

  result<void> join(const std::string& node, const std::string& proof, const agent_actor& agent) {
    const auto nonce = nonces.find(node);
    const bool right =
        nonce != nonces.end() && same_proof(proof, proof_of(settings.secret, nonce->second + node));
    if (nonce != nonces.end()) nonces.erase(nonce);
    if (!right)
      return refuse("node '" + node + "' does not know the secret; give it a copy of the client's");
    // Not for ever: the one before may be gone, and not yet known to be.
    if (!joined.emplace(node, agent.address()).second)
      return refuse("node '" + node + "' has joined already", errc::capacity);
    settings.on_joined(node, agent);
    return {};
  }

  /// The name that it had joined under.
  std::optional<std::string> forget(const caf::actor_addr& agent) {
    const auto found =
        std::ranges::find_if(joined, [&](const auto& entry) { return entry.second == agent; });
    if (found == joined.end()) return std::nullopt;
    std::string node = found->first;
    joined.erase(found);
    return node;
  }

  void left(const caf::actor_addr& agent) {
    if (const auto node = forget(agent)) settings.on_left(*node, agent);
  }
};

controller_actor::behavior_type controller_behavior(
    controller_actor::stateful_pointer<controller_state> self,
    const controller_settings& settings) {
  self->state.settings = settings;
  self->set_down_handler([self](const caf::down_msg& down) { self->state.left(down.source); });
  return {
      [self](hello_atom, const std::string& node,
             const std::vector<std::string>& identity) -> caf::result<std::string> {
        auto nonce = self->state.hello(node, identity);
        if (!nonce) return actors::to_caf(nonce.error());
        return *nonce;
      },
      [self](join_atom, const std::string& node, const std::string& proof,
             const agent_actor& agent) -> caf::result<std::uint64_t> {
        const result<void> joined = self->state.join(node, proof, agent);
        if (!joined) return actors::to_caf(joined.error());
        self->monitor(agent);
        return static_cast<std::uint64_t>(self->state.settings.start_limit.count());
      },
      [self](fault_atom, const std::string& where, std::uint8_t code, const std::string& text,
             std::uint32_t epoch) {
        self->state.settings.on_fault({where, {static_cast<errc>(code), text}, epoch_id{epoch}});
      },
      [self](lost_atom, const std::string& node, const std::string& peer, std::uint8_t code,
             const std::string& text, std::uint32_t epoch) {
        self->state.settings.on_lost(node, peer, {static_cast<errc>(code), text}, epoch_id{epoch});
      },
      [self](forget_atom, const caf::actor_addr& agent) {
        // The client's word only: anybody may reach this actor.
        const auto& sender = self->current_sender();
        if (!sender || sender->node() != self->node()) return;
        self->demonitor(agent);
        self->state.forget(agent);
      },
  };
}

}  // namespace

controller_actor spawn_controller(caf::actor_system& system, controller_settings settings) {
  return system.spawn(controller_behavior, std::move(settings));
}

}  // namespace cedar::topology
