// Two nodes prove to each other that they know the same secret, before any frame is taken. Pure:
// bytes in, bytes out.
//
//   initiator                                   acceptor
//   hello(i, wanted, name, nonce_i)        ->
//                                          <-   challenge(a, name, nonce_a, HMAC("acceptor", all))
//   proof(HMAC("initiator", all))          ->
//                                          <-   welcome
//
// all = both ids, both names, both nonces; HMAC-SHA256 keyed with the secret. Either side may
// answer refusal(reason, text) instead and end the connection. The secret never travels; what an
// eavesdropper learns is good for guessing short secrets only, hence their least length. Frames are
// not encrypted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/transport/control.hpp"
#include "runtime/transport/options.hpp"

namespace cedar::transport {

class handshake {
 public:
  enum class state : std::uint8_t {
    going_on,
    established,  ///< the reply, if any, is a welcome
    failed,
  };
  struct outcome {
    state now = state::going_on;
    std::vector<std::byte> reply;  ///< to be sent; empty: nothing
    error reason;  ///< failed
    bool worth_a_retry = false;  ///< failed, but only for the moment
  };

  /// For the node that connects, looking for node `wanted`.
  static handshake initiate(node_identity self, const shared_secret& secret, node_id wanted);
  /// For the node that was connected to.
  static handshake accept(node_identity self, const shared_secret& secret);

  /// The initiator's first message.
  std::vector<std::byte> hello() const;

  /// A control message of kinds hello to refusal.
  outcome receive(const control_message& message);

  /// The peer's proof was right; its frames may be kept, though not yet delivered.
  bool peer_proven() const { return peer_proven_; }
  /// Meaningful once the peer's first message was received.
  const node_identity& peer() const { return peer_; }
  bool is_initiator() const { return initiator_; }

 private:
  enum class expecting : std::uint8_t { hello, challenge, proof, welcome, nothing };

  handshake(node_identity self, const shared_secret& secret, bool initiator);
  outcome refuse(refusal_kind kind, errc code, const std::string& text);
  outcome refused_by_peer(const control_message& message);
  outcome receive_hello(const control_message& message);
  outcome receive_challenge(const control_message& message);
  outcome receive_proof(const control_message& message);
  proof_bytes proof_of(bool of_initiator) const;
  std::string secrets_differ() const;

  node_identity self_;
  node_identity peer_;
  shared_secret secret_;
  bool initiator_;
  bool peer_proven_ = false;
  expecting expecting_;
  node_id wanted_;
  nonce_bytes own_nonce_;
  nonce_bytes peer_nonce_{};
};

/// "node 1 ('decode')".
std::string to_text(const node_identity& node);

}  // namespace cedar::transport
