#include "runtime/flow/edge.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"

namespace cedar::flow {

namespace {

std::string on_edge(const edge_contract& contract) {
  return "edge '" + contract.name + "'";
}

/// What both directions of an edge check first: is it this edge's, this model's, this epoch's,
/// next?
result<arrival> judge(const edge_contract& contract, epoch_id present, std::uint64_t& expected,
                      const envelope& head, const message& body) {
  if (head.edge != contract.edge) {
    return fail(errc::mismatch, on_edge(contract) + ": got a message of edge " +
                                    std::to_string(head.edge.value) + ", expected edge " +
                                    std::to_string(contract.edge.value));
  }
  if (head.fingerprint != contract.fingerprint) {
    return fail(errc::mismatch, on_edge(contract) + ": got model fingerprint " +
                                    std::to_string(head.fingerprint) + ", expected " +
                                    std::to_string(contract.fingerprint));
  }
  const epoch_id got = epoch_of(body);
  if (got < present) return arrival::stale;
  if (got > present) {
    return fail(errc::malformed, on_edge(contract) + ": got epoch " + std::to_string(got.value) +
                                     " ahead of the present epoch " +
                                     std::to_string(present.value));
  }
  if (head.sequence < expected) return arrival::duplicate;
  if (head.sequence > expected) {
    return fail(errc::malformed, on_edge(contract) + ": sequence gap, expected " +
                                     std::to_string(expected) + ", got " +
                                     std::to_string(head.sequence));
  }
  ++expected;
  return arrival::fresh;
}

}  // namespace

outbound_edge::outbound_edge(edge_contract contract, std::size_t queue_messages_max)
    : contract_(std::move(contract)),
      queue_messages_max_(queue_messages_max),
      credit_messages_(contract_.window_messages),
      credit_bytes_(contract_.window_bytes) {
  CEDAR_REQUIRE(contract_.window_messages > 0, on_edge(contract_) + ": window of no messages");
}

void outbound_edge::push(message value, edge_time now) {
  const std::uint64_t bytes = flow::credit_bytes(value);
  CEDAR_REQUIRE(!std::holds_alternative<credit>(value),
                on_edge(contract_) + ": a credit does not travel with the messages");
  CEDAR_REQUIRE(epoch_of(value) == epoch_, on_edge(contract_) + ": message of epoch " +
                                               std::to_string(epoch_of(value).value) +
                                               " sent in epoch " + std::to_string(epoch_.value));
  CEDAR_REQUIRE(bytes <= contract_.window_bytes,
                on_edge(contract_) + ": message of " + std::to_string(bytes) +
                    " bytes never fits the window of " + std::to_string(contract_.window_bytes));
  CEDAR_REQUIRE(queue_.size() < queue_messages_max_, on_edge(contract_) + ": un-credited send, " +
                                                         std::to_string(queue_.size()) +
                                                         " messages wait for credit already");
  const bool waits = !queue_.empty() || !affordable(bytes);
  queue_.push_back({std::move(value), bytes, now, waits});
  if (waits) ++statistics_.waits;
  statistics_.queued_max = std::max(statistics_.queued_max, queue_.size());
}

bool outbound_edge::affordable(std::uint64_t bytes) const noexcept {
  return credit_messages_ > 0 && bytes <= credit_bytes_;
}

std::optional<stamped_message> outbound_edge::pop(edge_time now) {
  if (queue_.empty() || !affordable(queue_.front().bytes)) return std::nullopt;
  waiting next = std::move(queue_.front());
  queue_.pop_front();
  --credit_messages_;
  credit_bytes_ -= next.bytes;
  ++statistics_.messages;
  statistics_.bytes += next.bytes;
  if (next.had_to_wait) statistics_.waited += now - next.since;
  return stamped_message{{contract_.edge, sequence_++, contract_.fingerprint},
                         std::move(next.value)};
}

result<void> outbound_edge::grant(const envelope& head, const credit& value) {
  result<arrival> judged = judge(contract_, epoch_, credit_sequence_, head, message(value));
  if (!judged) return fail(judged.error().with("credit"));
  if (*judged != arrival::fresh) {
    ++statistics_.credits_dropped;
    return {};
  }
  if (value.messages > contract_.window_messages - credit_messages_ ||
      value.bytes > contract_.window_bytes - credit_bytes_) {
    return fail(errc::malformed, "credit: " + on_edge(contract_) + ": " +
                                     std::to_string(value.messages) + " messages and " +
                                     std::to_string(value.bytes) + " bytes exceed the window");
  }
  credit_messages_ += value.messages;
  credit_bytes_ += value.bytes;
  return {};
}

void outbound_edge::reset(epoch_id epoch) {
  CEDAR_REQUIRE(epoch > epoch_, on_edge(contract_) + ": epochs only rise");
  epoch_ = epoch;
  sequence_ = 0;
  credit_sequence_ = 0;
  credit_messages_ = contract_.window_messages;
  credit_bytes_ = contract_.window_bytes;
  queue_.clear();
}

inbound_edge::inbound_edge(edge_contract contract) : contract_(std::move(contract)) {}

result<arrival> inbound_edge::accept(const envelope& head, const message& body) {
  if (std::holds_alternative<credit>(body)) {
    return fail(errc::malformed, on_edge(contract_) + ": got a credit where messages arrive");
  }
  result<arrival> judged = judge(contract_, epoch_, sequence_, head, body);
  if (!judged) return judged;
  switch (*judged) {
    case arrival::fresh:
      return accept_fresh(flow::credit_bytes(body));
    case arrival::duplicate:
      ++statistics_.duplicates;
      break;
    case arrival::stale:
      ++statistics_.stale;
      break;
  }
  return judged;
}

result<arrival> inbound_edge::accept_fresh(std::uint64_t bytes) {
  const std::uint64_t messages_out = std::uint64_t{held_messages_} + owed_messages_;
  const std::uint64_t bytes_out = held_bytes_ + owed_bytes_;
  if (messages_out >= contract_.window_messages || bytes > contract_.window_bytes - bytes_out) {
    return fail(errc::malformed, on_edge(contract_) + ": sent without credit, " +
                                     std::to_string(bytes) + " bytes beyond a window of " +
                                     std::to_string(contract_.window_messages) + " messages and " +
                                     std::to_string(contract_.window_bytes) + " bytes");
  }
  ++held_messages_;
  held_bytes_ += bytes;
  ++statistics_.messages;
  statistics_.bytes += bytes;
  statistics_.held_messages_max = std::max(statistics_.held_messages_max, held_messages_);
  statistics_.held_bytes_max = std::max(statistics_.held_bytes_max, held_bytes_);
  return arrival::fresh;
}

void inbound_edge::consumed(epoch_id epoch, std::uint64_t bytes) {
  if (epoch < epoch_) return;
  CEDAR_REQUIRE(epoch == epoch_, on_edge(contract_) + ": consumed a message of a later epoch");
  CEDAR_REQUIRE(held_messages_ > 0 && bytes <= held_bytes_,
                on_edge(contract_) + ": consumed more than was accepted");
  --held_messages_;
  held_bytes_ -= bytes;
  ++owed_messages_;
  owed_bytes_ += bytes;
}

std::optional<stamped_message> inbound_edge::pop_credit() {
  const bool half_owed = 2 * std::uint64_t{owed_messages_} >= contract_.window_messages ||
                         owed_bytes_ >= contract_.window_bytes - contract_.window_bytes / 2;
  if (owed_messages_ == 0 || !(half_owed || held_messages_ == 0)) return std::nullopt;
  const credit value{epoch_, std::exchange(owed_messages_, 0), std::exchange(owed_bytes_, 0)};
  ++statistics_.credits_sent;
  return stamped_message{{contract_.edge, credit_sequence_++, contract_.fingerprint}, value};
}

void inbound_edge::reset(epoch_id epoch) {
  CEDAR_REQUIRE(epoch > epoch_, on_edge(contract_) + ": epochs only rise");
  epoch_ = epoch;
  sequence_ = 0;
  credit_sequence_ = 0;
  held_messages_ = owed_messages_ = 0;
  held_bytes_ = owed_bytes_ = 0;
}

}  // namespace cedar::flow
