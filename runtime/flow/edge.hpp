// The two ends of an edge: numbering, credit, and what a receiver refuses. No threads, no actors,
// no bytes on a wire; the link or the actor at each end owns one object and calls it from one
// thread.
//
// 1. The consumer's window (messages and bytes) comes from the plan, the same number at both ends:
//    credit at the producer + on the way + held by the consumer + credit on its way back = window.
// 2. The producer's queue of messages waiting for credit is bounded; more is a defect (its maker
//    should have waited).
// 3. Messages of one epoch are numbered from 0 without gaps. Duplicates and messages of older
// epochs
//    are dropped and counted; a gap, a newer epoch, a foreign fingerprint, more than the window:
//    error.
// 4. A new epoch empties both ends: sequences restart, the whole window is granted again.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/messages.hpp"

namespace cedar::flow {

using edge_time = std::chrono::steady_clock::time_point;

/// What both ends of an edge must agree on. Made by the plan.
struct edge_contract {
  edge_id edge;
  std::string name;  ///< "stage-a -> stage-b activation": for texts
  std::uint64_t fingerprint = 0;  ///< of the model
  std::uint32_t window_messages = 1;
  std::uint64_t window_bytes = 0;  ///< at least the largest message's credit_bytes
};

struct stamped_message {
  envelope head;
  message body;
};

struct outbound_statistics {
  std::uint64_t messages = 0;  ///< popped
  std::uint64_t bytes = 0;  ///< their credit_bytes
  std::uint64_t waits = 0;  ///< messages that found no credit when pushed
  std::chrono::nanoseconds waited{0};  ///< sum over them, push to pop
  std::size_t queued_max = 0;  ///< most messages ever waiting
  std::uint64_t credits_dropped = 0;  ///< duplicate or stale credits
};

/// The producer's end.
class outbound_edge {
 public:
  /// `queue_messages_max`: most messages that may wait for credit, derived by the plan.
  outbound_edge(edge_contract contract, std::size_t queue_messages_max);

  /// Takes a message; pop() gives it back, numbered, when credit allows. Defect: the queue is full,
  /// the message could never fit the window, or its epoch is not the edge's.
  void push(message value, edge_time now);

  /// The next message in order if its credit is there, else nothing.
  std::optional<stamped_message> pop(edge_time now);

  /// A credit that arrived. Errors as inbound_edge::accept, and credit beyond the window.
  result<void> grant(const envelope& head, const credit& value);

  /// Starts `epoch` (newer than the present one, else a defect): forgets waiting messages.
  void reset(epoch_id epoch);

  epoch_id epoch() const noexcept { return epoch_; }
  /// Messages waiting for credit; at queue_messages_max the next push is a defect.
  std::size_t queued() const noexcept { return queue_.size(); }
  std::uint32_t credit_messages() const noexcept { return credit_messages_; }
  std::uint64_t credit_bytes_left() const noexcept { return credit_bytes_; }
  const edge_contract& contract() const noexcept { return contract_; }
  const outbound_statistics& statistics() const noexcept { return statistics_; }

 private:
  struct waiting {
    message value;
    std::uint64_t bytes;
    edge_time since;
    bool had_to_wait;
  };
  bool affordable(std::uint64_t bytes) const noexcept;

  edge_contract contract_;
  std::size_t queue_messages_max_;
  epoch_id epoch_;
  std::uint64_t sequence_ = 0;  ///< of the next message
  std::uint64_t credit_sequence_ = 0;  ///< expected of the next credit
  std::uint32_t credit_messages_;
  std::uint64_t credit_bytes_;
  std::deque<waiting> queue_;
  outbound_statistics statistics_;
};

enum class arrival : std::uint8_t {
  fresh,  ///< the next of its epoch: use it, then call consumed()
  duplicate,  ///< seen before: drop it
  stale,  ///< of an older epoch: drop it
};

struct inbound_statistics {
  std::uint64_t messages = 0;  ///< fresh ones
  std::uint64_t bytes = 0;  ///< their credit_bytes
  std::uint64_t duplicates = 0;
  std::uint64_t stale = 0;
  std::uint64_t credits_sent = 0;
  std::uint32_t held_messages_max = 0;
  std::uint64_t held_bytes_max = 0;
};

/// The consumer's end.
class inbound_edge {
 public:
  explicit inbound_edge(edge_contract contract);

  /// Judges a message. Errors, each naming the edge: mismatch (fingerprint; another edge's
  /// message), malformed (sequence gap: expected and got; epoch ahead: present and got; beyond the
  /// window).
  result<arrival> accept(const envelope& head, const message& body);

  /// A fresh message is done with: its room may be granted again. `bytes`: its credit_bytes.
  /// Without effect for messages of an epoch that is over.
  void consumed(epoch_id epoch, std::uint64_t bytes);

  /// The credit to send to the producer now, if any. Credits are batched until half the window is
  /// owed or nothing is held any more, so that a waiting producer always gets one.
  std::optional<stamped_message> pop_credit();

  /// Starts `epoch` (newer than the present one, else a defect).
  void reset(epoch_id epoch);

  epoch_id epoch() const noexcept { return epoch_; }
  const edge_contract& contract() const noexcept { return contract_; }
  const inbound_statistics& statistics() const noexcept { return statistics_; }

 private:
  result<arrival> accept_fresh(std::uint64_t bytes);

  edge_contract contract_;
  epoch_id epoch_;
  std::uint64_t sequence_ = 0;  ///< expected of the next message
  std::uint64_t credit_sequence_ = 0;
  std::uint32_t held_messages_ = 0;  ///< accepted, not consumed
  std::uint64_t held_bytes_ = 0;
  std::uint32_t owed_messages_ = 0;  ///< consumed, credit not sent
  std::uint64_t owed_bytes_ = 0;
  inbound_statistics statistics_;
};

}  // namespace cedar::flow
