#include "runtime/transport/ucx/mailbox.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"

namespace cedar::transport::ucx {

mailbox::mailbox(std::size_t queue_bytes_max)
    : queue_bytes_max_(queue_bytes_max), event_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  CEDAR_ASSERT(event_fd_ >= 0, "the system has no event descriptor left");
}

mailbox::~mailbox() {
  ::close(event_fd_);
}

void mailbox::send(node_id to, flow::frame frame) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = peers_.find(to);
    if (found == peers_.end() || !found->second.statistics.up || found->second.overflowed) {
      ++totals_.frames_to_nobody;
      return;
    }
    peer_entry& peer = found->second;
    const std::uint64_t bytes = frame.bytes();
    if (bytes > queue_bytes_max_ -
                    std::min<std::uint64_t>(peer.statistics.queued_bytes, queue_bytes_max_)) {
      peer.overflowed = true;
      commands_.emplace_back(disconnect_command{
          to,
          {errc::peer_lost,
           "node " + std::to_string(to.value) + " ('" + peer.statistics.name +
               "') does not drain: " + std::to_string(peer.statistics.queued_bytes) +
               " bytes wait, the limit is " + std::to_string(queue_bytes_max_)}});
    } else {
      peer.statistics.queued_bytes += bytes;
      peer.statistics.queued_bytes_max =
          std::max(peer.statistics.queued_bytes_max, peer.statistics.queued_bytes);
      commands_.emplace_back(send_command{to, peer.generation, std::move(frame)});
    }
  }
  wake();
}

void mailbox::post(command what) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(what));
  }
  wake();
}

void mailbox::wake() {
  if (!sleeping_.exchange(false)) return;
  const std::uint64_t one = 1;
  // Fails only if the counter is full, and then the thread wakes anyway.
  [[maybe_unused]] const auto written = ::write(event_fd_, &one, sizeof one);
}

port_statistics mailbox::statistics() const {
  const std::lock_guard lock(mutex_);
  port_statistics out = totals_;
  for (const auto& [peer, entry] : peers_) out.peers.push_back(entry.statistics);
  return out;
}

std::vector<command> mailbox::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(commands_, {});
}

bool mailbox::may_sleep() {
  sleeping_.store(true);
  const std::lock_guard lock(mutex_);
  if (commands_.empty()) return true;
  sleeping_.store(false);
  return false;
}

void mailbox::woke() {
  sleeping_.store(false);
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(event_fd_, &count, sizeof count);
}

std::uint64_t mailbox::peer_up(node_id peer, const std::string& name,
                               const std::string& transport) {
  const std::lock_guard lock(mutex_);
  peer_entry& entry = peers_[peer];
  entry.statistics.peer = peer;
  entry.statistics.name = name;
  entry.statistics.transport = transport;
  entry.statistics.up = true;
  entry.statistics.queued_bytes = 0;
  entry.overflowed = false;
  return ++entry.generation;
}

void mailbox::peer_down(node_id peer) {
  const std::lock_guard lock(mutex_);
  peer_entry& entry = peers_.at(peer);
  entry.statistics.up = false;
  entry.statistics.queued_bytes = 0;
}

void mailbox::note_sent(node_id peer, std::uint64_t frames, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  peer_statistics& entry = peers_.at(peer).statistics;
  entry.frames_sent += frames;
  entry.bytes_sent += bytes;
  entry.queued_bytes -= bytes;
}

void mailbox::note_received(node_id peer, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  peer_statistics& entry = peers_.at(peer).statistics;
  ++entry.frames_received;
  entry.bytes_received += bytes;
}

void mailbox::note_strangers(std::uint64_t frames) {
  const std::lock_guard lock(mutex_);
  totals_.frames_from_strangers += frames;
}

void mailbox::note_frame_refused() {
  const std::lock_guard lock(mutex_);
  ++totals_.frames_refused;
}

void mailbox::note_connection_refused(const std::string& why) {
  const std::lock_guard lock(mutex_);
  ++totals_.connections_refused;
  totals_.last_refusal = why;
}

}  // namespace cedar::transport::ucx
