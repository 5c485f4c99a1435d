#include "runtime/transport/probed_port.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <utility>

namespace cedar::transport {

namespace {

enum class probe_kind : std::uint64_t { question = 1, answer = 2 };

/// Header of a frame, little-endian.
struct probe_header {
  std::uint64_t magic = 0;
  probe_kind kind = probe_kind::question;
  std::uint64_t id = 0;  ///< of the question
  std::uint64_t answer_bytes = 0;  ///< payload that is wanted back; of an answer 0
};

/// "cedarprb".
constexpr std::uint64_t probe_magic = 0x6272707261646563;

std::vector<std::byte> pack(const probe_header& header) {
  static_assert(std::endian::native == std::endian::little, "frames are little-endian");
  std::vector<std::byte> out(sizeof header);
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

std::optional<probe_header> unpack_probe(const std::vector<std::byte>& bytes) {
  probe_header header;
  if (bytes.size() != sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  const bool known = header.magic == probe_magic && header.answer_bytes <= probe_bytes_max &&
                     (header.kind == probe_kind::question || header.kind == probe_kind::answer);
  return known ? std::optional(header) : std::nullopt;
}

/// Not zeros: a tunnel that compresses would seem fast.
flow::payload_ref make_payload(std::size_t bytes) {
  kernels::buffer memory(bytes);
  std::mt19937_64 random;
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(memory.data() + at, &word, std::min(sizeof word, bytes - at));
  }
  return flow::freeze(std::move(memory));
}

std::uint64_t less(std::uint64_t all, std::uint64_t own) {
  return all - std::min(all, own);
}

}  // namespace

result<std::unique_ptr<probed_port>> probed_port::open(port_handler& handler, const opener& open) {
  std::unique_ptr<probed_port> made(new probed_port(handler));
  auto inner = open(*made);
  if (!inner) return fail(inner.error());
  made->inner_ = std::move(*inner);
  return made;
}

result<link_measurement> probed_port::measure(node_id peer, time_point until) {
  const std::scoped_lock one_at_a_time(measuring_);
  auto measured = probe_link(
      [&](std::size_t there, std::size_t back) { return exchange(peer, there, back, until); });
  if (!measured) return fail(measured.error());
  for (const peer_statistics& entry : inner_->statistics().peers)
    if (entry.peer == peer) measured->transport = entry.transport;
  return measured;
}

result<std::chrono::nanoseconds> probed_port::exchange(node_id peer, std::size_t there,
                                                       std::size_t back, time_point until) {
  std::unique_lock lock(mutex_);
  asked_ = {peer, ++last_id_, std::nullopt};
  const std::uint64_t id = asked_.id;
  lock.unlock();
  const time_point asked_at = std::chrono::steady_clock::now();
  send_own(peer, pack({probe_magic, probe_kind::question, id, back}), there);
  lock.lock();
  const auto lost = [&]() -> std::optional<error> {
    const auto found = peers_.find(peer);
    if (found == peers_.end()) return error{errc::peer_lost, "it is not connected"};
    return found->second;
  };
  const bool over = changed_.wait_until(
      lock, until, [&] { return asked_.answered || abandoned_ || lost().has_value(); });
  if (asked_.answered) return *asked_.answered - asked_at;
  if (const auto reason = lost()) return fail(*reason);
  if (over) return fail(errc::cancelled, "measuring was given up");
  return fail(errc::timeout, "it did not answer " + std::to_string(there) + " bytes in time");
}

void probed_port::abandon() {
  {
    const std::scoped_lock lock(mutex_);
    abandoned_ = true;
  }
  changed_.notify_all();
}

void probed_port::send_own(node_id to, std::vector<std::byte> header, std::size_t payload_bytes) {
  flow::frame frame;
  frame.header = std::move(header);
  {
    const std::scoped_lock lock(mutex_);
    flow::payload_ref& payload = payloads_[payload_bytes];
    if (!payload && payload_bytes > 0) payload = make_payload(payload_bytes);
    frame.tensor = payload;
    ++own_[to].frames_sent;
    own_[to].bytes_sent += frame.bytes();
  }
  inner_->send(to, std::move(frame));
}

bool probed_port::take(node_id from, const flow::received_frame& frame) {
  const auto header = unpack_probe(frame.header);
  if (!header) return false;
  const time_point now = std::chrono::steady_clock::now();
  {
    const std::scoped_lock lock(mutex_);
    ++own_[from].frames_received;
    own_[from].bytes_received += frame.bytes();
    if (header->kind == probe_kind::answer && asked_.peer == from && asked_.id == header->id)
      asked_.answered = now;
  }
  if (header->kind == probe_kind::question)
    send_own(from, pack({probe_magic, probe_kind::answer, header->id, 0}), header->answer_bytes);
  else
    changed_.notify_all();
  return true;
}

void probed_port::on_frame(node_id from, flow::received_frame frame) {
  if (!take(from, frame)) handler_.on_frame(from, std::move(frame));
}

void probed_port::on_peer_up(node_id peer) {
  {
    const std::scoped_lock lock(mutex_);
    peers_[peer] = std::nullopt;
  }
  handler_.on_peer_up(peer);
}

void probed_port::on_peer_lost(node_id peer, const error& reason) {
  {
    const std::scoped_lock lock(mutex_);
    peers_[peer] = reason;
  }
  changed_.notify_all();
  handler_.on_peer_lost(peer, reason);
}

node_id probed_port::self() const {
  return inner_->self();
}

std::string probed_port::address() const {
  return inner_->address();
}

void probed_port::connect(node_id peer, const std::string& address,
                          std::chrono::milliseconds deadline) {
  inner_->connect(peer, address, deadline);
}

void probed_port::send(node_id to, flow::frame frame) {
  inner_->send(to, std::move(frame));
}

void probed_port::disconnect(node_id peer, const error& reason) {
  inner_->disconnect(peer, reason);
}

result<void> probed_port::close(std::chrono::milliseconds deadline) {
  abandon();
  return inner_->close(deadline);
}

port_statistics probed_port::statistics() const {
  port_statistics out = inner_->statistics();
  const std::scoped_lock lock(mutex_);
  for (peer_statistics& peer : out.peers) {
    const auto found = own_.find(peer.peer);
    if (found == own_.end()) continue;
    peer.frames_sent = less(peer.frames_sent, found->second.frames_sent);
    peer.bytes_sent = less(peer.bytes_sent, found->second.bytes_sent);
    peer.frames_received = less(peer.frames_received, found->second.frames_received);
    peer.bytes_received = less(peer.bytes_received, found->second.bytes_received);
  }
  return out;
}

}  // namespace cedar::transport
