#include "runtime/transport/faulty_port.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace cedar::transport {

faulty_port::faulty_port(port& inner, const fault_plan& plan, std::function<time_point()> now)
    : inner_(inner), plan_(plan), now_(std::move(now)), random_(plan.seed) {}

node_id faulty_port::self() const {
  return inner_.self();
}

std::string faulty_port::address() const {
  return inner_.address();
}

void faulty_port::connect(node_id peer, const std::string& address,
                          std::chrono::milliseconds deadline) {
  inner_.connect(peer, address, deadline);
}

void faulty_port::disconnect(node_id peer, const error& reason) {
  inner_.disconnect(peer, reason);
}

port_statistics faulty_port::statistics() const {
  return inner_.statistics();
}

result<void> faulty_port::close(std::chrono::milliseconds deadline) {
  release(true);
  return inner_.close(deadline);
}

bool faulty_port::happens(double probability) {
  // Drawn whatever the probability, so that changing one leaves the others' draws alone.
  constexpr double scale = 0x1p-53;
  return static_cast<double>(random_() >> 11) * scale < probability;
}

void faulty_port::corrupt(flow::frame& frame) {
  const std::size_t bit = random_() % (frame.bytes() * 8);
  const std::byte mask = std::byte{1} << (bit % 8);
  std::size_t at = bit / 8;
  if (at < frame.header.size()) {
    frame.header[at] ^= mask;
    return;
  }
  at -= frame.header.size();
  const auto tensor = flow::bytes_of(frame.tensor);
  if (at >= tensor.size()) {
    frame.lists[at - tensor.size()] ^= mask;
    return;
  }
  kernels::buffer damaged(tensor.size());
  std::memcpy(damaged.data(), tensor.data(), tensor.size());
  damaged.data()[at] ^= mask;
  frame.tensor = flow::freeze(std::move(damaged));
}

void faulty_port::send(node_id to, flow::frame frame) {
  const std::lock_guard lock(mutex_);
  ++counts_.sent;
  const bool dropped = happens(plan_.drop), duplicated = happens(plan_.duplicate);
  const bool corrupted = happens(plan_.corrupt), disconnected = happens(plan_.disconnect);
  if (disconnected) {
    ++counts_.disconnected;
    inner_.disconnect(to, {errc::peer_lost, "injected fault: disconnected"});
    return;
  }
  if (dropped) {
    ++counts_.dropped;
    return;
  }
  if (corrupted && frame.bytes() > 0) {
    ++counts_.corrupted;
    corrupt(frame);
  }
  if (duplicated) {
    ++counts_.duplicated;
    send_or_hold(to, frame);
  }
  send_or_hold(to, std::move(frame));
}

void faulty_port::send_or_hold(node_id to, flow::frame frame) {
  const bool reordered = happens(plan_.reorder), delayed = happens(plan_.delay);
  if (reordered) {
    ++counts_.reordered;
    held_.push_back({to, std::move(frame), {}, true});
    return;
  }
  if (delayed && plan_.delay_max.count() > 0) {
    ++counts_.delayed;
    const auto delay = std::chrono::nanoseconds(
        static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(plan_.delay_max.count())));
    held_.push_back({to, std::move(frame), now_() + delay, false});
    return;
  }
  inner_.send(to, std::move(frame));
  release_overtaken(to);
}

void faulty_port::release_overtaken(node_id to) {
  for (auto at = held_.begin(); at != held_.end();) {
    if (!at->until_overtaken || at->to != to) {
      ++at;
      continue;
    }
    inner_.send(to, std::move(at->frame));
    at = held_.erase(at);
  }
}

void faulty_port::release(bool everything) {
  const std::lock_guard lock(mutex_);
  std::vector<held_frame> due;
  for (auto at = held_.begin(); at != held_.end();) {
    if (!everything && (at->until_overtaken || at->due > now_())) {
      ++at;
      continue;
    }
    due.push_back(std::move(*at));
    at = held_.erase(at);
  }
  std::stable_sort(due.begin(), due.end(),
                   [](const held_frame& a, const held_frame& b) { return a.due < b.due; });
  for (held_frame& next : due) inner_.send(next.to, std::move(next.frame));
}

void faulty_port::calm() {
  const std::lock_guard lock(mutex_);
  plan_ = {.seed = plan_.seed};
}

fault_counts faulty_port::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace cedar::transport
