#include "runtime/transport/loopback_hub.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <variant>

#include "kernels/base/check.hpp"

namespace cedar::transport {

namespace {

/// What a network does: the payload lands, in one piece, in a buffer of the receiver.
flow::received_frame copy_across(const flow::frame& frame) {
  flow::received_frame out{frame.header, kernels::buffer::uninitialized(frame.payload_bytes())};
  const auto tensor = flow::bytes_of(frame.tensor);
  if (!tensor.empty()) std::memcpy(out.payload.data(), tensor.data(), tensor.size());
  if (!frame.lists.empty()) {
    std::memcpy(out.payload.data() + tensor.size(), frame.lists.data(), frame.lists.size());
  }
  return out;
}

struct frame_event {
  node_id from;
  flow::frame frame;
};
struct up_event {
  node_id peer;
};
struct lost_event {
  node_id peer;
  error reason;
};
struct event {
  node_id to;
  std::variant<frame_event, up_event, lost_event> what;
};

using node_pair = std::pair<node_id, node_id>;

node_pair pair_of(node_id a, node_id b) {
  return {std::min(a, b), std::max(a, b)};
}

}  // namespace

struct loopback_hub::state {
  struct node {
    port_handler* handler;
    std::string name;
    port_statistics statistics;  ///< peers: by id, appended when first up
  };

  std::mutex mutex;
  std::condition_variable changed;
  std::map<node_id, node> nodes;
  std::set<node_pair> links;
  std::deque<event> events;
  std::optional<node_id> busy;  ///< whose handler is being called
  bool closed = false;
  std::thread runner;

  peer_statistics& statistics_of(node_id self, node_id peer);
  void note_frame(node_id from, node_id to, std::size_t bytes, bool arrived);
  void set_link(node_id a, node_id b, bool up);
  bool take_and_handle(std::unique_lock<std::mutex>& lock);
  void remove(node_id self);
};

peer_statistics& loopback_hub::state::statistics_of(node_id self, node_id peer) {
  auto& peers = nodes.at(self).statistics.peers;
  auto at = std::find_if(peers.begin(), peers.end(),
                         [&](const peer_statistics& entry) { return entry.peer >= peer; });
  if (at == peers.end() || at->peer != peer) {
    at = peers.insert(at, peer_statistics{});
    at->peer = peer;
    at->transport = "loopback";
  }
  return *at;
}

void loopback_hub::state::note_frame(node_id from, node_id to, std::size_t bytes, bool arrived) {
  if (nodes.contains(from)) {
    peer_statistics& sender = statistics_of(from, to);
    if (arrived) {
      sender.queued_bytes -= bytes;
      ++sender.frames_sent;
      sender.bytes_sent += bytes;
    } else {
      sender.queued_bytes += bytes;
      sender.queued_bytes_max = std::max(sender.queued_bytes_max, sender.queued_bytes);
    }
  }
  if (arrived && nodes.contains(to)) {
    peer_statistics& receiver = statistics_of(to, from);
    ++receiver.frames_received;
    receiver.bytes_received += bytes;
  }
}

void loopback_hub::state::set_link(node_id a, node_id b, bool up) {
  if (up) {
    links.insert(pair_of(a, b));
  } else {
    links.erase(pair_of(a, b));
  }
  for (const auto& [self, peer] : {node_pair{a, b}, node_pair{b, a}}) {
    if (!nodes.contains(self)) continue;
    peer_statistics& entry = statistics_of(self, peer);
    entry.up = up;
    if (nodes.contains(peer)) entry.name = nodes.at(peer).name;
  }
}

/// While a node's handler is called: without the lock, and close() waits. Ends also by a defect
/// that the handler throws.
class loopback_hub::call_in_progress {
 public:
  call_in_progress(state& hub, std::unique_lock<std::mutex>& lock, node_id node)
      : hub_(hub), lock_(lock) {
    hub_.busy = node;
    lock_.unlock();
  }
  ~call_in_progress() {
    lock_.lock();
    hub_.busy.reset();
    hub_.changed.notify_all();
  }
  call_in_progress(const call_in_progress&) = delete;
  call_in_progress& operator=(const call_in_progress&) = delete;

 private:
  state& hub_;
  std::unique_lock<std::mutex>& lock_;
};

/// Calls one handler, without the lock. False: nothing to do.
bool loopback_hub::state::take_and_handle(std::unique_lock<std::mutex>& lock) {
  if (events.empty()) return false;
  event next = std::move(events.front());
  events.pop_front();
  if (auto* arrived = std::get_if<frame_event>(&next.what)) {
    note_frame(arrived->from, next.to, arrived->frame.bytes(), true);
  }
  const auto found = nodes.find(next.to);
  if (found == nodes.end()) return true;
  port_handler& handler = *found->second.handler;
  const call_in_progress calling(*this, lock, next.to);
  if (auto* arrived = std::get_if<frame_event>(&next.what)) {
    handler.on_frame(arrived->from, copy_across(arrived->frame));
  } else if (const auto* up = std::get_if<up_event>(&next.what)) {
    handler.on_peer_up(up->peer);
  } else {
    const auto& lost = std::get<lost_event>(next.what);
    handler.on_peer_lost(lost.peer, lost.reason);
  }
  return true;
}

void loopback_hub::state::remove(node_id self) {
  const std::set<node_pair> before = links;
  for (const node_pair& link : before) {
    if (link.first != self && link.second != self) continue;
    const node_id peer = link.first == self ? link.second : link.first;
    set_link(self, peer, false);
    events.push_back(
        {peer, lost_event{
                   self, {errc::cancelled, "node '" + nodes.at(self).name + "' closed its port"}}});
  }
  nodes.erase(self);
}

/// The port of one node.
class loopback_hub::endpoint final : public port {
 public:
  endpoint(std::shared_ptr<state> shared, node_id self) : state_(std::move(shared)), self_(self) {}
  ~endpoint() override {
    const result<void> closed = close({});
    static_cast<void>(closed);
  }

  node_id self() const override { return self_; }
  std::string address() const override { return "loopback:" + std::to_string(self_.value); }

  void connect(node_id peer, const std::string& address, std::chrono::milliseconds) override {
    const std::lock_guard lock(state_->mutex);
    if (closed() || state_->links.contains(pair_of(self_, peer))) return;
    if (peer == self_ || !state_->nodes.contains(peer)) {
      state_->events.push_back({self_, lost_event{peer, {errc::timeout, "no node at " + address}}});
    } else {
      state_->set_link(self_, peer, true);
      state_->events.push_back({self_, up_event{peer}});
      state_->events.push_back({peer, up_event{self_}});
    }
    state_->changed.notify_all();
  }

  void send(node_id to, flow::frame frame) override {
    const std::lock_guard lock(state_->mutex);
    if (closed()) return;
    if (!state_->links.contains(pair_of(self_, to))) {
      ++state_->nodes.at(self_).statistics.frames_to_nobody;
      return;
    }
    state_->note_frame(self_, to, frame.bytes(), false);
    state_->events.push_back({to, frame_event{self_, std::move(frame)}});
    state_->changed.notify_all();
  }

  void disconnect(node_id peer, const error& reason) override {
    const std::lock_guard lock(state_->mutex);
    if (closed() || !state_->links.contains(pair_of(self_, peer))) return;
    state_->set_link(self_, peer, false);
    state_->events.push_back({self_, lost_event{peer, reason}});
    state_->events.push_back(
        {peer, lost_event{self_,
                          {errc::peer_lost,
                           "node '" + state_->nodes.at(self_).name + "' dropped the connection"}}});
    state_->changed.notify_all();
  }

  result<void> close(std::chrono::milliseconds) override {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->busy != self_; });
    if (closed()) return {};
    last_statistics_ = state_->nodes.at(self_).statistics;
    state_->remove(self_);
    state_->changed.notify_all();
    return {};
  }

  port_statistics statistics() const override {
    const std::lock_guard lock(state_->mutex);
    return closed() ? last_statistics_ : state_->nodes.at(self_).statistics;
  }

 private:
  bool closed() const { return state_->closed || !state_->nodes.contains(self_); }

  std::shared_ptr<state> state_;  // SHARED: with the hub and its other ports
  node_id self_;
  port_statistics last_statistics_;
};

loopback_hub::loopback_hub() : state_(std::make_shared<state>()) {}

loopback_hub::~loopback_hub() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    state_->changed.notify_all();
  }
  if (state_->runner.joinable()) state_->runner.join();
}

std::unique_ptr<port> loopback_hub::open(node_id self, const std::string& name,
                                         port_handler& handler) {
  const std::lock_guard lock(state_->mutex);
  CEDAR_REQUIRE(!state_->nodes.contains(self),
                "node " + std::to_string(self.value) + " has a port on this hub already");
  state_->nodes.emplace(self, state::node{&handler, name, {}});
  return std::make_unique<endpoint>(state_, self);
}

std::size_t loopback_hub::deliver(std::size_t events_max) {
  std::unique_lock lock(state_->mutex);
  CEDAR_REQUIRE(!state_->runner.joinable(), "a thread delivers this hub's events");
  std::size_t delivered = 0;
  while (delivered < events_max && state_->take_and_handle(lock)) ++delivered;
  return delivered;
}

void loopback_hub::run() {
  const std::lock_guard lock(state_->mutex);
  CEDAR_REQUIRE(!state_->runner.joinable(), "a thread delivers this hub's events already");
  state_->runner = std::thread([shared = state_.get()] {
    std::unique_lock running(shared->mutex);
    while (!shared->closed) {
      if (!shared->take_and_handle(running)) {
        shared->changed.wait(running, [&] { return shared->closed || !shared->events.empty(); });
      }
    }
  });
}

}  // namespace cedar::transport
