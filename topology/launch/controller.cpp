#include "topology/launch/controller.hpp"

#include <map>

#include "actors/error_bridge.hpp"
#include "kernels/ops/numerics.hpp"
#include "topology/launch/secret.hpp"

namespace cedar::topology {

namespace {

/// Greetings that may be open at once; more are refused.
constexpr std::size_t greetings_max = 256;

struct controller_state {
  controller_settings settings;
  std::map<std::string, std::string> nonces;  ///< by node
  std::set<std::string> joined;

  result<std::string> hello(const std::string& node, const std::string& numerics) {
    if (numerics != kernels::numerics_id)
      return fail(errc::refused, "node '" + node + "' computes with " + numerics +
                                     ", this client with " + std::string(kernels::numerics_id) +
                                     "; run the same version of cedar on both");
    if (!settings.nodes.contains(node))
      return fail(errc::refused, "the topology expects no node '" + node + "'");
    if (nonces.size() >= greetings_max) return fail(errc::refused, "too many nodes are joining");
    return nonces[node] = make_nonce();
  }

  result<void> join(const std::string& node, const std::string& proof) {
    const auto nonce = nonces.find(node);
    const bool right =
        nonce != nonces.end() && same_proof(proof, proof_of(settings.secret, nonce->second + node));
    if (nonce != nonces.end()) nonces.erase(nonce);
    if (!right) return fail(errc::refused, "node '" + node + "' does not know the secret");
    if (!joined.insert(node).second)
      return fail(errc::refused, "node '" + node + "' has joined already");
    return {};
  }
};

controller_actor::behavior_type controller_behavior(
    controller_actor::stateful_pointer<controller_state> self,
    const controller_settings& settings) {
  self->state.settings = settings;
  return {
      [self](hello_atom, const std::string& node,
             const std::string& numerics) -> caf::result<std::string> {
        auto nonce = self->state.hello(node, numerics);
        if (!nonce) return actors::to_caf(nonce.error());
        return *nonce;
      },
      [self](join_atom, const std::string& node, const std::string& proof,
             const agent_actor& agent) -> caf::result<joined_atom> {
        const result<void> joined = self->state.join(node, proof);
        if (!joined) return actors::to_caf(joined.error());
        self->state.settings.on_joined(node, agent);
        return joined_atom::value;
      },
      [self](fault_atom, const std::string& where, std::uint8_t code, const std::string& text) {
        self->state.settings.on_fault({where, {static_cast<errc>(code), text}});
      },
  };
}

}  // namespace

controller_actor spawn_controller(caf::actor_system& system, controller_settings settings) {
  return system.spawn(controller_behavior, std::move(settings));
}

}  // namespace cedar::topology
