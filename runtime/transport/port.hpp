// A node's door to the other nodes: authenticated, ordered, lossless frames, or the news of a loss.
//
// 1. Frames between two nodes arrive once, in the order sent, or the peer is reported lost.
// 2. Every connect() ends in exactly one on_peer_up or on_peer_lost; every on_peer_up is followed
// by
//    exactly one on_peer_lost, unless this side closes the port first.
// 3. A peer that sends nothing for options' silence limit is lost. Heartbeats are the port's own
// and
//    wait for nobody's compute.
// 4. No call blocks, except close().
// Flow control is not the port's: credits (runtime/flow/edge.hpp) bound what is queued. A peer with
// more than options' queue limit waiting is dropped as one that does not drain.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/frame.hpp"

namespace cedar::transport {

/// What the port tells its owner. Called from the port's thread, one call at a time: must neither
/// block nor throw, may call port::send, connect and disconnect (not close). Outlives the port.
class port_handler {
 public:
  virtual ~port_handler() = default;

  virtual void on_frame(node_id from, flow::received_frame frame) = 0;
  /// The peer proved that it knows the secret; frames may be sent.
  virtual void on_peer_up(node_id peer) = 0;
  /// No frame of this connection follows, and frames not yet sent are dropped. `reason.message`
  /// names peer and cause. Codes: peer_lost (died, stopped, does not drain), timeout (never
  /// answered), refused (secret, version, identity), cancelled (it closed its port in good order),
  /// or whatever disconnect() was given.
  virtual void on_peer_lost(node_id peer, const error& reason) = 0;
};

struct peer_statistics {
  node_id peer;
  std::string name;  ///< as the peer gave it
  std::string transport;  ///< what carries the frames, e.g. "tcp/lo", "posix/memory", "loopback"
  bool up = false;
  std::uint64_t frames_sent = 0;
  std::uint64_t bytes_sent = 0;  ///< headers and payloads of frames; not heartbeats
  std::uint64_t frames_received = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t queued_bytes = 0;  ///< handed to send(), not yet taken by the network
  std::uint64_t queued_bytes_max = 0;  ///< largest value so far
};

struct port_statistics {
  std::vector<peer_statistics> peers;  ///< every peer ever up, by id
  std::uint64_t frames_to_nobody = 0;  ///< sent to a peer that was not up, dropped
  std::uint64_t frames_from_strangers = 0;  ///< from unauthenticated connections, dropped
  std::uint64_t frames_refused = 0;  ///< larger than the frame limit, dropped with their peer
  std::uint64_t connections_refused = 0;  ///< wrong secret, version or identity
  std::string last_refusal;  ///< why, of the last of them
};

class port {
 public:
  virtual ~port() = default;

  virtual node_id self() const = 0;

  /// Where other nodes reach this one, e.g. "127.0.0.1:40913". Give it to their connect().
  virtual std::string address() const = 0;

  /// Reaches for `peer` at `address`, again and again until it answers or `deadline` passes. One of
  /// two peers connects, the other waits. The outcome comes as an event.
  virtual void connect(node_id peer, const std::string& address,
                       std::chrono::milliseconds deadline) = 0;

  /// Queues a frame for `to`, from any thread. Dropped and counted if `to` is not up: the loss has
  /// been, or is about to be, reported.
  virtual void send(node_id to, flow::frame frame) = 0;

  /// Gives a peer up, or up looking for it: on_peer_lost(peer, reason) here, and peer_lost over
  /// there if it was up. No effect on others.
  virtual void disconnect(node_id peer, const error& reason) = 0;

  /// Sends what is queued, says goodbye, and stops. No event follows its return. Error timeout: not
  /// everything was taken by the network in time (the port is closed all the same).
  virtual result<void> close(std::chrono::milliseconds deadline) = 0;

  virtual port_statistics statistics() const = 0;
};

}  // namespace cedar::transport
