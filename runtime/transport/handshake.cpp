#include "runtime/transport/handshake.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <utility>

#include "kernels/base/check.hpp"

namespace cedar::transport {

namespace {

nonce_bytes fresh_nonce() {
  nonce_bytes nonce;
  const int drawn =
      RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), static_cast<int>(nonce.size()));
  CEDAR_ASSERT(drawn == 1, "the system has no random bytes");
  return nonce;
}

template <class Bytes>
void append(std::vector<unsigned char>& out, const Bytes& bytes) {
  const auto* first = reinterpret_cast<const unsigned char*>(std::data(bytes));
  out.insert(out.end(), first, first + std::size(bytes));
}

void append(std::vector<unsigned char>& out, const node_identity& node) {
  const std::array<std::uint32_t, 2> numbers{node.node.value,
                                             static_cast<std::uint32_t>(node.name.size())};
  append(out, std::as_bytes(std::span(numbers)));
  append(out, node.name);
}

bool equal(const proof_bytes& left, const proof_bytes& right) {
  return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

std::string version_text(const std::string& who, std::uint16_t version) {
  return who + " speaks transport protocol " + std::to_string(version) + ", this node " +
         std::to_string(transport_version);
}

}  // namespace

std::string to_text(const node_identity& node) {
  return "node " + std::to_string(node.node.value) +
         (node.name.empty() ? std::string() : " ('" + node.name + "')");
}

handshake::handshake(node_identity self, const shared_secret& secret, bool initiator)
    : self_(std::move(self)),
      secret_(secret),
      initiator_(initiator),
      expecting_(initiator ? expecting::challenge : expecting::hello),
      own_nonce_(fresh_nonce()) {
  CEDAR_REQUIRE(secret.size() >= secret_bytes_min, "the shared secret is too short");
}

handshake handshake::initiate(node_identity self, const shared_secret& secret, node_id wanted) {
  handshake out(std::move(self), secret, true);
  out.wanted_ = wanted;
  out.peer_.node = wanted;
  return out;
}

handshake handshake::accept(node_identity self, const shared_secret& secret) {
  return handshake(std::move(self), secret, false);
}

std::vector<std::byte> handshake::hello() const {
  control_message message;
  message.kind = control_kind::hello;
  message.from = self_;
  message.wanted = wanted_;
  message.nonce = own_nonce_;
  return pack(message);
}

handshake::outcome handshake::receive(const control_message& message) {
  if (message.kind == control_kind::refusal) return refused_by_peer(message);
  if (message.version != transport_version) {
    return refuse(refusal_kind::version, errc::refused,
                  version_text(to_text(peer_), message.version));
  }
  const bool in_order =
      (message.kind == control_kind::hello && expecting_ == expecting::hello) ||
      (message.kind == control_kind::challenge && expecting_ == expecting::challenge) ||
      (message.kind == control_kind::proof && expecting_ == expecting::proof) ||
      (message.kind == control_kind::welcome && expecting_ == expecting::welcome);
  if (!in_order) {
    return refuse(refusal_kind::malformed, errc::malformed,
                  to_text(peer_) + " does not follow the handshake");
  }
  switch (message.kind) {
    case control_kind::hello:
      return receive_hello(message);
    case control_kind::challenge:
      return receive_challenge(message);
    case control_kind::proof:
      return receive_proof(message);
    default:
      break;
  }
  expecting_ = expecting::nothing;
  return {state::established, {}, {}, false};
}

handshake::outcome handshake::receive_hello(const control_message& message) {
  peer_ = message.from;
  peer_nonce_ = message.nonce;
  if (message.wanted != self_.node) {
    return refuse(refusal_kind::identity, errc::refused,
                  to_text(peer_) + " looks for node " + std::to_string(message.wanted.value) +
                      ", but this is " + to_text(self_));
  }
  if (peer_.node == self_.node) {
    return refuse(refusal_kind::identity, errc::refused,
                  to_text(peer_) + " has the same id as " + to_text(self_));
  }
  control_message reply;
  reply.kind = control_kind::challenge;
  reply.from = self_;
  reply.nonce = own_nonce_;
  reply.proof = proof_of(false);
  expecting_ = expecting::proof;
  return {state::going_on, pack(reply), {}, false};
}

handshake::outcome handshake::receive_challenge(const control_message& message) {
  peer_ = message.from;
  peer_nonce_ = message.nonce;
  if (peer_.node != wanted_) {
    return refuse(refusal_kind::identity, errc::refused,
                  "looked for node " + std::to_string(wanted_.value) + ", found " + to_text(peer_));
  }
  if (!equal(message.proof, proof_of(false))) {
    return refuse(refusal_kind::secret, errc::refused, secrets_differ());
  }
  peer_proven_ = true;
  control_message reply;
  reply.kind = control_kind::proof;
  reply.proof = proof_of(true);
  expecting_ = expecting::welcome;
  return {state::going_on, pack(reply), {}, false};
}

handshake::outcome handshake::receive_proof(const control_message& message) {
  if (!equal(message.proof, proof_of(true))) {
    return refuse(refusal_kind::secret, errc::refused, secrets_differ());
  }
  peer_proven_ = true;
  expecting_ = expecting::nothing;
  control_message reply;
  reply.kind = control_kind::welcome;
  return {state::established, pack(reply), {}, false};
}

handshake::outcome handshake::refuse(refusal_kind kind, errc code, const std::string& text) {
  expecting_ = expecting::nothing;
  return {state::failed, pack(refusal(kind, text)), {code, text}, false};
}

handshake::outcome handshake::refused_by_peer(const control_message& message) {
  expecting_ = expecting::nothing;
  const bool retry = message.reason == refusal_kind::already_connected;
  return {state::failed, {}, {errc::refused, to_text(peer_) + " refuses: " + message.text}, retry};
}

std::string handshake::secrets_differ() const {
  return "the shared secrets of " + to_text(self_) + " and " + to_text(peer_) + " differ";
}

proof_bytes handshake::proof_of(bool of_initiator) const {
  std::vector<unsigned char> signed_bytes;
  append(signed_bytes, std::string(of_initiator ? "cedar initiator" : "cedar acceptor"));
  append(signed_bytes, initiator_ ? self_ : peer_);
  append(signed_bytes, initiator_ ? peer_ : self_);
  append(signed_bytes, initiator_ ? own_nonce_ : peer_nonce_);
  append(signed_bytes, initiator_ ? peer_nonce_ : own_nonce_);
  proof_bytes out;
  unsigned int bytes = 0;
  const unsigned char* made =
      HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()), signed_bytes.data(),
           signed_bytes.size(), reinterpret_cast<unsigned char*>(out.data()), &bytes);
  CEDAR_ASSERT(made != nullptr && bytes == out.size(), "HMAC-SHA256 failed");
  return out;
}

}  // namespace cedar::transport
