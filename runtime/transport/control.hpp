// The port's own small messages: who is there, proof of the secret, heartbeat, goodbye. Packed
// little-endian; the prefix (magic, version, kind) and the refusal never change between versions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"

namespace cedar::transport {

/// Of these messages and of the frame prefix. Raised when two nodes would misunderstand each other.
inline constexpr std::uint16_t transport_version = 1;

enum class control_kind : std::uint8_t {
  hello = 1,  ///< initiator -> acceptor: identity, nonce
  challenge,  ///< acceptor -> initiator: identity, nonce, proof
  proof,  ///< initiator -> acceptor
  welcome,  ///< acceptor -> initiator: frames may flow
  refusal,  ///< either way: the connection ends, and why
  heartbeat,  ///< either way, between frames
  goodbye,  ///< no more frames after `frames` of them; answered by goodbye_seen
  goodbye_seen,  ///< the other side may go
};

enum class refusal_kind : std::uint8_t {
  secret = 1,  ///< proofs do not match
  version,  ///< transport_version differs
  identity,  ///< not the node that was looked for
  already_connected,  ///< a connection with this node is up: try again later
  malformed,  ///< a message that does not follow the protocol
};

using nonce_bytes = std::array<std::byte, 32>;
using proof_bytes = std::array<std::byte, 32>;

struct node_identity {
  node_id node;
  std::string name;

  friend bool operator==(const node_identity&, const node_identity&) = default;
};

/// Any control message; fields beyond `kind` are meaningful for the kinds that name them.
struct control_message {
  control_kind kind = control_kind::heartbeat;
  std::uint16_t version = transport_version;
  node_identity from;  ///< hello, challenge
  node_id wanted;  ///< hello: whom the initiator looks for
  nonce_bytes nonce{};  ///< hello, challenge
  proof_bytes proof{};  ///< challenge, proof
  refusal_kind reason = refusal_kind::malformed;  ///< refusal
  std::string text;  ///< refusal: for people, at most refusal_text_bytes_max
  std::uint64_t frames = 0;  ///< goodbye: frames sent on this connection
};

inline constexpr std::size_t refusal_text_bytes_max = 512;

/// At most this long, whatever the message.
inline constexpr std::size_t control_bytes_max = 768;

/// Texts too long are cut.
std::vector<std::byte> pack(const control_message& message);

/// Of another version than ours only `kind`, `version` and a refusal's fields are read. Errors:
/// malformed.
result<control_message> unpack(std::span<const std::byte> bytes);

control_message refusal(refusal_kind reason, std::string text);

}  // namespace cedar::transport
