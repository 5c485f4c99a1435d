#include "runtime/transport/shaped_port.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"

namespace cedar::transport {

shaped_port::shaped_port(const shape_options& options, port_handler& handler,
                         std::function<time_point()> now)
    : queue_bytes_max_(options.queue_bytes_max), handler_(handler), now_(std::move(now)) {
  for (const auto& [peer, shape] : options.links)
    links_.emplace(peer, outgoing{shaped_link(shape, options.seed, options.self, peer)});
}

result<std::unique_ptr<shaped_port>> shaped_port::open(const shape_options& options,
                                                       port_handler& handler, const opener& open,
                                                       std::function<time_point()> now) {
  std::unique_ptr<shaped_port> made(new shaped_port(options, handler, std::move(now)));
  auto inner = open(*made);
  if (!inner) return fail(inner.error());
  made->inner_ = std::move(*inner);
  return made;
}

shaped_port::~shaped_port() {
  stop_running();
}

node_id shaped_port::self() const {
  return inner_->self();
}

std::string shaped_port::address() const {
  return inner_->address();
}

void shaped_port::connect(node_id peer, const std::string& address,
                          std::chrono::milliseconds deadline) {
  inner_->connect(peer, address, deadline);
}

void shaped_port::disconnect(node_id peer, const error& reason) {
  inner_->disconnect(peer, reason);
}

std::string shaped_port::text_of(node_id peer) const {
  std::string name;
  for (const peer_statistics& entry : inner_->statistics().peers)
    if (entry.peer == peer) name = entry.name;
  return "node " + std::to_string(peer.value) + " ('" + name + "')";
}

void shaped_port::give_up(node_id peer, outgoing& to, const std::string& why) {
  to.given_up = true;
  to.held.clear();
  to.held_bytes = 0;
  inner_->disconnect(peer, {errc::peer_lost, why});
}

void shaped_port::send(node_id to, flow::frame frame) {
  const std::lock_guard lock(mutex_);
  const auto found = links_.find(to);
  if (found == links_.end() || !found->second.up || closed_) {
    inner_->send(to, std::move(frame));
    return;
  }
  outgoing& link = found->second;
  if (link.given_up) {
    ++frames_to_nobody_;
    return;
  }
  const std::uint64_t bytes = frame.bytes();
  if (link.held_bytes + bytes > queue_bytes_max_) {
    give_up(to, link,
            "the emulated link to " + text_of(to) +
                " does not drain: " + std::to_string(link.held_bytes) +
                " bytes wait, the limit is " + std::to_string(queue_bytes_max_));
    return;
  }
  const shaped_link::passage passage = link.link.take(now_(), bytes);
  link.losses += passage.losses;
  link.held_bytes += bytes;
  link.held_bytes_max = std::max(link.held_bytes_max, link.held_bytes);
  link.held.push_back({passage, std::move(frame)});
  // Those behind the first arrive later than it.
  if (link.held.size() == 1) changed_.notify_one();
}

void shaped_port::let_go(node_id peer, outgoing& to, time_point until) {
  while (!to.held.empty() && to.held.front().passage.due <= until) {
    held_frame next = std::move(to.held.front());
    to.held.pop_front();
    if (next.passage.given_up) {
      give_up(peer, to,
              "the emulated link to " + text_of(peer) + " lost a packet " +
                  std::to_string(next.passage.losses) + " times in a row");
      return;
    }
    to.held_bytes -= next.frame.bytes();
    inner_->send(peer, std::move(next.frame));
  }
}

std::optional<shaped_port::time_point> shaped_port::release_due() {
  const time_point now = now_();
  std::optional<time_point> next;
  for (auto& [peer, link] : links_) {
    let_go(peer, link, now);
    if (link.held.empty()) continue;
    const time_point due = link.held.front().passage.due;
    next = next ? std::min(*next, due) : due;
  }
  return next;
}

std::optional<shaped_port::time_point> shaped_port::release() {
  const std::lock_guard lock(mutex_);
  return release_due();
}

void shaped_port::run() {
  const std::lock_guard lock(mutex_);
  CEDAR_REQUIRE(!runner_.joinable(), "a thread releases this port's frames already");
  runner_ = std::thread([this] {
    std::unique_lock running(mutex_);
    while (!closed_) {
      if (const auto next = release_due())
        changed_.wait_until(running, *next);
      else
        changed_.wait(running);
    }
  });
}

void shaped_port::stop_running() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
  if (runner_.joinable()) runner_.join();
}

result<void> shaped_port::close(std::chrono::milliseconds deadline) {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (auto& [peer, link] : links_) let_go(peer, link, time_point::max());
  }
  stop_running();
  return inner_->close(deadline);
}

void shaped_port::on_frame(node_id from, flow::received_frame frame) {
  handler_.on_frame(from, std::move(frame));
}

void shaped_port::on_peer_up(node_id peer) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = links_.find(peer); found != links_.end()) {
      found->second.up = true;
      found->second.given_up = false;
      found->second.link.clear();
    }
  }
  handler_.on_peer_up(peer);
}

void shaped_port::on_peer_lost(node_id peer, const error& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = links_.find(peer); found != links_.end()) {
      found->second.up = false;
      found->second.held.clear();
      found->second.held_bytes = 0;
    }
  }
  handler_.on_peer_lost(peer, reason);
}

port_statistics shaped_port::statistics() const {
  const std::lock_guard lock(mutex_);
  port_statistics out = inner_->statistics();
  out.frames_to_nobody += frames_to_nobody_;
  for (peer_statistics& peer : out.peers) {
    const auto found = links_.find(peer.peer);
    if (found == links_.end()) continue;
    const outgoing& link = found->second;
    peer.queued_bytes += link.held_bytes;
    peer.queued_bytes_max = std::max(peer.queued_bytes_max, link.held_bytes_max);
    peer.transport += ", emulated: " + to_string(link.link.shape());
    if (link.losses > 0) peer.transport += " (" + std::to_string(link.losses) + " lost)";
  }
  return out;
}

}  // namespace cedar::transport
