#include "actors/edge_set.hpp"

#include <algorithm>
#include <array>

#include "kernels/base/check.hpp"

namespace cedar::actors {

namespace {

step_id step_of(const flow::message& message) {
  return std::visit(
      [](const auto& value) {
        if constexpr (requires { value.step; }) return value.step;
        return step_id{};
      },
      message);
}

/// What tells edges of one kind apart: layer, reader and slice.
using edge_route = std::array<std::uint32_t, 3>;

edge_route route_of(const flow::message& message) {
  const auto* block = std::get_if<flow::row_block>(&message);
  if (block == nullptr) return {};
  // Requests of all layers take one edge, but those for entries, which name the owner.
  const bool of_layers = (is_request(block->kind) || is_reply(block->kind)) &&
                         block->kind != flow::row_kind::gather_request &&
                         block->kind != flow::row_kind::gathered;
  return {of_layers ? 0 : block->layer, block->reader, block->slice};
}

}  // namespace

void edge_set::bind(const std::vector<edge_end>& ends, epoch_id epoch) {
  CEDAR_REQUIRE(!epoch_ || epoch > *epoch_, "epochs only rise");
  epoch_ = epoch;
  outbound_.clear();
  inbound_.clear();
  held_.clear();
  for (const edge_end& end : ends) {
    if (end.outbound) {
      flow::outbound_edge edge(end.contract, end.queue_messages_max);
      if (epoch > edge.epoch()) edge.reset(epoch);
      outbound_.emplace(end.contract.edge,
                        outbound_end{std::move(edge), end.carries, end.layer, end.reader, end.slice,
                                     end.to_drafter, end.peer});
    } else {
      flow::inbound_edge edge(end.contract);
      if (epoch > edge.epoch()) edge.reset(epoch);
      inbound_.emplace(end.contract.edge, inbound_end{std::move(edge), end.carries, end.peer});
    }
  }
}

void edge_set::send(const flow::message& message, bool concerns_drafter) {
  bool sent = false;
  for (auto& [id, end] : outbound_) {
    if (end.carries != flow::kind_of(message) ||
        edge_route{end.layer, end.reader, end.slice} != route_of(message) ||
        (end.to_drafter && !concerns_drafter))
      continue;
    end.edge.push(message, flow::edge_time::clock::now());
    flush(end);
    sent = true;
  }
  CEDAR_ASSERT(sent, "no edge carries " + std::string(flow::kind_of(message)) + " of layer " +
                         std::to_string(route_of(message)[0]));
}

void edge_set::flush(outbound_end& end) {
  const auto now = flow::edge_time::clock::now();
  std::chrono::nanoseconds waited_before = end.edge.statistics().waited;
  while (auto stamped = end.edge.pop(now)) {
    const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(
        end.edge.statistics().waited - waited_before);
    waited_before = end.edge.statistics().waited;
    trace_.count(end.edge.contract().name, flow::credit_bytes(stamped->body),
                 static_cast<std::uint64_t>(waited.count()));
    if (trace_.on())
      trace_.add({trace_kind::message, end.edge.contract().name, step_of(stamped->body).value,
                  trace_us(now) - waited.count(), waited.count(), flow::credit_bytes(stamped->body),
                  0});
    deliver_(end.peer, std::make_shared<const flow::stamped_message>(std::move(*stamped)));
  }
}

result<std::optional<flow::message>> edge_set::receive(const packet_ref& packet) {
  const edge_id id = packet->head.edge;
  if (const auto* credit = std::get_if<flow::credit>(&packet->body)) {
    const auto found = outbound_.find(id);
    if (found == outbound_.end())
      return fail(errc::malformed,
                  "credit for edge " + std::to_string(id.value) + ", which does not leave here");
    if (const result<void> granted = found->second.edge.grant(packet->head, *credit); !granted)
      return fail(granted.error());
    flush(found->second);
    return std::nullopt;
  }
  const auto found = inbound_.find(id);
  if (found == inbound_.end())
    return fail(errc::malformed,
                "a message on edge " + std::to_string(id.value) + ", which does not end here");
  const result<flow::arrival> arrived = found->second.edge.accept(packet->head, packet->body);
  if (!arrived) return fail(arrived.error());
  if (*arrived != flow::arrival::fresh) return std::nullopt;
  held_.push_back(
      {id, flow::epoch_of(packet->body), flow::credit_bytes(packet->body), step_of(packet->body)});
  return packet->body;
}

void edge_set::release(const held_input& input) {
  inbound_end& end = inbound_.at(input.edge);
  end.edge.consumed(input.epoch, input.bytes);
  while (auto credit = end.edge.pop_credit())
    deliver_(end.peer, std::make_shared<const flow::stamped_message>(std::move(*credit)));
}

void edge_set::consumed_step(step_id step) {
  const auto used = std::ranges::stable_partition(
      held_, [step](const held_input& input) { return input.step != step; });
  const std::vector<held_input> inputs(used.begin(), used.end());
  held_.erase(used.begin(), used.end());
  for (const held_input& input : inputs) release(input);
}

void edge_set::consumed_now() {
  CEDAR_REQUIRE(!held_.empty(), "no packet to release");
  const held_input input = held_.back();
  held_.pop_back();
  release(input);
}

const std::string* edge_set::waiting_edge(std::string_view kind) const {
  const auto found = std::ranges::find_if(outbound_, [kind](const auto& entry) {
    return entry.second.carries == kind && entry.second.edge.queued() > 0;
  });
  return found == outbound_.end() ? nullptr : &found->second.edge.contract().name;
}

std::size_t edge_set::inbound_count(std::string_view kind) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      inbound_, [kind](const auto& entry) { return entry.second.carries == kind; }));
}

}  // namespace cedar::actors
