// How connections are served, and how they end.
#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"
#include "runtime/transport/ucx/port_loop.hpp"

namespace cedar::transport::ucx {

namespace {

using namespace std::chrono_literals;

/// How long a connection may linger for the other side to read the last message and go.
constexpr auto linger_limit = 1s;

}  // namespace

connection* port_loop::connection_of(const ucp_am_recv_param_t* param) {
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0) return nullptr;
  const auto found = by_handle_.find(param->reply_ep);
  return found == by_handle_.end() ? nullptr : found->second;
}

ucs_status_t port_loop::on_frame_message(void* self, const void* header, std::size_t header_bytes,
                                         void* data, std::size_t bytes,
                                         const ucp_am_recv_param_t* param) noexcept {
  auto* loop = static_cast<port_loop*>(self);
  connection* link = loop->connection_of(param);
  if (link == nullptr) {
    ++loop->strange_frames_;
    return UCS_OK;
  }
  return link->note_piece(header, header_bytes, data, bytes, param->recv_attr);
}

ucs_status_t port_loop::on_control_message(void* self, const void* header, std::size_t header_bytes,
                                           void*, std::size_t,
                                           const ucp_am_recv_param_t* param) noexcept {
  connection* link = static_cast<port_loop*>(self)->connection_of(param);
  if (link != nullptr && header_bytes <= control_bytes_max)
    link->note_control(header, header_bytes);
  return UCS_OK;
}

void port_loop::serve(connection& link) {
  if (link.leave_by) {
    if (link.fault() || now_ >= *link.leave_by) retire(link);
    return;
  }
  if (link.take_heard() && link.up) liveness_.heard(link.greeting().peer().node, now_);
  while (const auto message = link.next_control()) {
    serve_control(link, *message);
    if (link.closed() || link.leave_by) return;
  }
  strange_frames_ += link.take_strange_frames();
  if (link.up) {
    deliver(link);
    if (link.closed() || link.leave_by) return;
  }
  if (const auto fault = link.fault()) {
    if (fault->code == errc::capacity) box_.note_frame_refused();
    lose(link, fault->with(describe(link)));
    return;
  }
  if (!link.up && now_ - link.since() >= common_.handshake_limit) {
    lose(link, {errc::timeout, describe(link) + ": no answer to the greeting"});
    return;
  }
  link.pump();
}

void port_loop::serve_control(connection& link, const std::vector<std::byte>& bytes) {
  const auto message = unpack(bytes);
  if (!message) {
    dismiss(link, pack(refusal(refusal_kind::malformed, message.error().message)),
            message.error().with(describe(link)), false);
    return;
  }
  if (!link.up) {
    serve_handshake(link, *message);
    return;
  }
  switch (message->kind) {
    case control_kind::heartbeat:
      break;
    case control_kind::goodbye:
      link.goodbye_after = message->frames;
      break;
    case control_kind::goodbye_seen:
      link.goodbye_seen = true;
      break;
    default:
      lose(link, {errc::malformed, describe(link) + " greets again"});
      break;
  }
}

/// Hands frames to the owner; notes what the network took.
void port_loop::deliver(connection& link) {
  const node_id peer = link.greeting().peer().node;
  if (const auto sent = link.take_sent(); sent.frames > 0) {
    box_.note_sent(peer, sent.frames, sent.bytes);
  }
  while (auto frame = link.next_frame()) {
    box_.note_received(peer, frame->bytes());
    handler_.on_frame(peer, std::move(*frame));
  }
  if (link.goodbye_after && link.frames_received() >= *link.goodbye_after) part(link);
}

/// The peer has closed its port, and everything that it sent is here.
void port_loop::part(connection& link) {
  control_message seen;
  seen.kind = control_kind::goodbye_seen;
  link.send_control(pack(seen));
  link.goodbye_after.reset();
  link.goodbye_seen = true;
  if (closing_) return;  // both go; this side still has its own goodbye to say
  const node_identity peer = link.greeting().peer();
  link.up = false;
  link.leave_by = now_ + linger_limit;
  live_.erase(peer.node);
  liveness_.remove(peer.node);
  box_.peer_down(peer.node);
  handler_.on_peer_lost(peer.node, {errc::cancelled, to_text(peer) + " closed its port"});
}

void port_loop::watch_peers() {
  if (strange_frames_ > 0) box_.note_strangers(std::exchange(strange_frames_, 0));
  const liveness::findings found = liveness_.tick(now_);
  if (found.heartbeat_due) {
    control_message heartbeat;
    heartbeat.kind = control_kind::heartbeat;
    const std::vector<std::byte> bytes = pack(heartbeat);
    for (const auto& [peer, live] : live_) live.link->send_control(bytes);
  }
  for (const node_id peer : found.silent) {
    connection& link = *live_.at(peer).link;
    lose(link, {errc::peer_lost, "no heartbeat from " + describe(link) + " for " +
                                     std::to_string(common_.silence_limit.count()) +
                                     " ms (deadlines_ms.heartbeat_lost)"});
  }
}

/// Ends a connection for good, in whatever state it is.
void port_loop::lose(connection& link, const error& reason) {
  const bool was_up = std::exchange(link.up, false);
  const bool goodbye_said = link.goodbye_sent;
  const node_id peer = link.greeting().peer().node;
  if (was_up) {
    live_.erase(peer);
    liveness_.remove(peer);
    box_.peer_down(peer);
  } else {
    note_failure(link, reason, true);
  }
  retire(link);
  if (was_up && !goodbye_said) handler_.on_peer_lost(peer, reason);
}

/// Ends a connection that never was up, with a last message that the other side should read.
void port_loop::dismiss(connection& link, const std::vector<std::byte>& last_words,
                        const error& reason, bool worth_a_retry) {
  if (link.up) {
    lose(link, reason);
    return;
  }
  note_failure(link, reason, worth_a_retry);
  if (last_words.empty()) {
    retire(link);
    return;
  }
  link.send_control(last_words);
  link.leave_by = now_ + linger_limit;
}

/// What a failed greeting means: another try, the end of the search, or a line in the statistics.
void port_loop::note_failure(connection& link, const error& reason, bool worth_a_retry) {
  const auto looking = std::find_if(attempts_.begin(), attempts_.end(), [&](const auto& entry) {
    return entry.second.current == &link;
  });
  if (looking != attempts_.end()) {
    looking->second.current = nullptr;
    looking->second.last_failure = reason.message;
    if (!worth_a_retry) end_attempt(looking->first, reason);
  } else if (reason.code == errc::refused || reason.code == errc::malformed) {
    box_.note_connection_refused(link.remote() + ": " + reason.message);
  }
}

void port_loop::retire(connection& link) {
  by_handle_.erase(link.handle());
  link.close();
  const auto at = std::find_if(connections_.begin(), connections_.end(),
                               [&](const auto& entry) { return entry.get() == &link; });
  CEDAR_ASSERT(at != connections_.end(), "a connection is retired once");
  retired_.push_back(std::move(*at));
  connections_.erase(at);
}

void port_loop::sweep() {
  std::erase_if(retired_, [](const auto& link) { return link->finished(); });
}

std::string port_loop::describe(const connection& link) const {
  const node_identity& peer = link.greeting().peer();
  return (peer.name.empty() ? "connection" : to_text(peer)) + " at " + link.remote();
}

}  // namespace cedar::transport::ucx
