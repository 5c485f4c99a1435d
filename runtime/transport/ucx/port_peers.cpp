// How connections begin: knocking, being knocked at, and the greeting.
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/transport/ucx/address.hpp"
#include "runtime/transport/ucx/port_loop.hpp"

namespace cedar::transport::ucx {

namespace {

using namespace std::chrono_literals;

/// Pauses between two tries to reach a peer double from the first to the second.
constexpr std::chrono::milliseconds first_pause = 25ms;
constexpr std::chrono::milliseconds longest_pause = 400ms;
/// Connections that have not yet proven who they are; more are turned away at the door.
constexpr std::ptrdiff_t unproven_max = 64;

std::string remote_of(ucp_conn_request_h request) {
  ucp_conn_request_attr_t attributes{};
  attributes.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
  if (ucp_conn_request_query(request, &attributes) != UCS_OK) return "an unknown address";
  sockaddr_in address{};
  std::memcpy(&address, &attributes.client_address, sizeof address);
  return to_text(address);
}

std::string in_seconds(std::chrono::milliseconds time) {
  const std::string tenths = std::to_string(time.count() / 100);
  const std::string padded = tenths.size() < 2 ? "0" + tenths : tenths;
  return padded.substr(0, padded.size() - 1) + "." + padded.back() + " s";
}

}  // namespace

connection& port_loop::keep(std::unique_ptr<endpoint> link, handshake greeting,
                            std::string remote) {
  const ucp_ep_h handle = link->handle();
  connections_.push_back(std::make_unique<connection>(
      *worker_, std::move(link), std::move(greeting), std::move(remote),
      connection::limits{common_.frame_bytes_max}, now_));
  by_handle_[handle] = connections_.back().get();
  return *connections_.back();
}

void port_loop::accept_requests() {
  while (const auto request = listener_->next_request()) {
    const auto unproven = std::count_if(connections_.begin(), connections_.end(),
                                        [](const auto& link) { return !link->up; });
    if (closing_ || unproven >= unproven_max) {
      listener_->reject(*request);
      continue;
    }
    std::string remote = remote_of(*request);
    auto link = endpoint::accept(*worker_, *request);
    if (!link) {
      box_.note_connection_refused(remote + ": " + link.error().message);
      continue;
    }
    keep(std::move(*link), handshake::accept(self_, common_.secret), std::move(remote));
  }
}

void port_loop::look_for_peers() {
  for (auto at = attempts_.begin(); at != attempts_.end();) {
    auto& [peer, looking] = *at++;  // end_attempt erases
    if (now_ >= looking.deadline) {
      if (looking.current != nullptr) retire(*looking.current);
      end_attempt(peer, {errc::timeout,
                         "node " + std::to_string(peer.value) + " at " + looking.address +
                             " did not answer within " + in_seconds(looking.patience) +
                             (looking.last_failure.empty() ? "" : ": " + looking.last_failure)});
    } else if (looking.current == nullptr && now_ >= looking.next_try) {
      begin_try(peer, looking);
    }
  }
}

void port_loop::begin_try(node_id peer, attempt& looking) {
  looking.pause = std::clamp(2 * looking.pause, first_pause, longest_pause);
  looking.next_try = now_ + looking.pause;
  auto link = endpoint::connect(*worker_, looking.remote);
  if (!link) {
    looking.last_failure = link.error().message;
    return;
  }
  connection& fresh =
      keep(std::move(*link), handshake::initiate(self_, common_.secret, peer), looking.address);
  looking.current = &fresh;
  fresh.send_control(fresh.greeting().hello());
}

void port_loop::end_attempt(node_id peer, const error& reason) {
  attempts_.erase(peer);
  handler_.on_peer_lost(peer, reason);
}

void port_loop::serve_handshake(connection& link, const control_message& message) {
  const handshake::outcome outcome = link.greeting().receive(message);
  switch (outcome.now) {
    case handshake::state::going_on:
      link.send_control(outcome.reply);
      break;
    case handshake::state::established:
      establish(link, outcome.reply);
      break;
    case handshake::state::failed:
      dismiss(link, outcome.reply, outcome.reason, outcome.worth_a_retry);
      break;
  }
}

/// Two nodes that look for each other at the same time: the one with the lower id connects.
bool port_loop::stands_back(node_id peer) {
  const auto looking = attempts_.find(peer);
  if (looking == attempts_.end()) return true;
  if (common_.self < peer) return false;
  if (looking->second.current != nullptr) retire(*looking->second.current);
  attempts_.erase(looking);
  return true;
}

void port_loop::establish(connection& link, const std::vector<std::byte>& welcome) {
  const node_identity peer = link.greeting().peer();
  const bool accepting = !link.greeting().is_initiator();
  if (closing_ || live_.contains(peer.node) || (accepting && !stands_back(peer.node))) {
    const std::string text = to_text(peer) + " is connected to " + to_text(self_) + " already";
    dismiss(link, pack(refusal(refusal_kind::already_connected, text)), {errc::refused, text},
            true);
    return;
  }
  if (accepting) link.send_control(welcome);
  attempts_.erase(peer.node);
  link.up = true;
  live_[peer.node] = {&link, box_.peer_up(peer.node, peer.name, link.transport())};
  liveness_.add(peer.node, now_);
  handler_.on_peer_up(peer.node);
}

}  // namespace cedar::transport::ucx
