#include "runtime/transport/ucx/port_loop.hpp"

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/base/check.hpp"
#include "runtime/transport/ucx/address.hpp"

namespace cedar::transport::ucx {

namespace {

using namespace std::chrono_literals;

/// How long the thread looks again and again before it sleeps: a wake-up costs about as much.
constexpr auto spin_max = 20us;
/// Rounds of progress before commands and clocks get their turn.
constexpr int progress_rounds_max = 64;
/// Longest sleep while something is being closed, whose end UCX does not signal.
constexpr auto closing_nap = 5ms;
/// How long UCX may take to let go of closed connections.
constexpr auto release_limit = 1s;

/// Rounds without work before waiting for room becomes a matter of naps instead of spinning.
constexpr int fruitless_max = 16;

void nap() {
  const timespec length{0, 200'000};
  ::nanosleep(&length, nullptr);
}

int to_poll_timeout(std::chrono::nanoseconds left) {
  // Rounded up: waking too early would mean to spin until the time has come.
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(milliseconds, 0, 60'000));
}

}  // namespace

port_loop::port_loop(const port_options& common, port_handler& handler, mailbox& box)
    : common_(common),
      self_{common.self, common.name},
      handler_(handler),
      box_(box),
      now_(std::chrono::steady_clock::now()),
      liveness_(common.heartbeat_interval, common.silence_limit, now_) {}

result<std::unique_ptr<port_loop>> port_loop::open(const port_options& common,
                                                   const ucx_options& options,
                                                   port_handler& handler, mailbox& box) {
  const auto bind = to_sockaddr(options.bind_address, options.bind_port);
  if (!bind) return fail(bind.error());
  const auto device = device_of(*bind);
  if (!device) return fail(device.error());
  if (const auto& allowed = options.devices;
      !allowed.empty() && std::find(allowed.begin(), allowed.end(), *device) == allowed.end()) {
    return fail(errc::invalid_argument, to_text(*bind) + " is an address of network device '" +
                                            *device + "', which is not among those to use");
  }

  std::unique_ptr<port_loop> out(new port_loop(common, handler, box));
  auto opened_context = context::open(options.carry, *device);
  if (!opened_context) return fail(opened_context.error());
  out->context_ = std::move(*opened_context);
  auto opened_worker = worker::open(*out->context_);
  if (!opened_worker) return fail(opened_worker.error());
  out->worker_ = std::move(*opened_worker);
  if (auto done = out->worker_->on_message(frame_message_id, &on_frame_message, out.get()); !done) {
    return fail(done.error());
  }
  if (auto done = out->worker_->on_message(control_message_id, &on_control_message, out.get());
      !done) {
    return fail(done.error());
  }
  auto listening = listener::open(*out->worker_, *bind);
  if (!listening) return fail(listening.error());
  out->listener_ = std::move(*listening);
  return out;
}

port_loop::~port_loop() {
  // UCX never let go of these: it may still write to their memory, which therefore stays.
  for (auto& link : retired_) static_cast<void>(link.release());
}

std::string port_loop::address() const {
  return to_text(listener_->address());
}

result<void> port_loop::run() {
  auto last_work = std::chrono::steady_clock::now();
  while (!closing_done()) {
    const bool worked = step();
    if (worked) {
      last_work = now_;
      fruitless_ = 0;
    } else if (now_ - last_work >= spin_max) {
      sleep();
    }
  }
  return shut_down();
}

result<void> port_loop::shut_down() {
  std::string undrained;
  for (const auto& link : connections_) {
    if (!link->up) continue;
    box_.peer_down(link->greeting().peer().node);
    if (!link->drained()) undrained += (undrained.empty() ? "" : ", ") + describe(*link);
  }
  listener_.reset();
  while (!connections_.empty()) retire(*connections_.front());
  const auto until = std::chrono::steady_clock::now() + release_limit;
  while (!retired_.empty() && std::chrono::steady_clock::now() < until) {
    if (!worker_->progress()) ::poll(nullptr, 0, 1);
    sweep();
  }
  if (undrained.empty()) return {};
  return fail(errc::timeout, "closed before everything was sent to " + undrained);
}

bool port_loop::step() {
  now_ = std::chrono::steady_clock::now();
  bool worked = take_commands();
  for (int i = 0; i < progress_rounds_max && worker_->progress(); ++i) worked = true;
  accept_requests();
  // By index: serving may retire the connection and append others.
  for (std::size_t i = 0; i < connections_.size();) {
    connection* link = connections_[i].get();
    serve(*link);
    if (i < connections_.size() && connections_[i].get() == link) ++i;
  }
  look_for_peers();
  watch_peers();
  sweep();
  return worked;
}

void port_loop::sleep() {
  const result<bool> armed = worker_->arm();
  CEDAR_ASSERT(armed.has_value(), armed.error().message);
  if (!*armed) {
    // Either something has just come, or UCX waits for room in shared memory, which nobody signals.
    if (++fruitless_ > fruitless_max) nap();
    return;
  }
  if (!box_.may_sleep()) return;
  std::array<pollfd, 2> waits{pollfd{worker_->event_fd(), POLLIN, 0},
                              pollfd{box_.event_fd(), POLLIN, 0}};
  const auto left = next_due() - std::chrono::steady_clock::now();
  ::poll(waits.data(), waits.size(), to_poll_timeout(left));
  box_.woke();
}

port_loop::time_point port_loop::next_due() const {
  time_point due = liveness_.next_due();
  for (const auto& [peer, looking] : attempts_) {
    due = std::min(due, looking.deadline);
    if (looking.current == nullptr) due = std::min(due, looking.next_try);
  }
  for (const auto& link : connections_) {
    if (link->leave_by) {
      due = std::min(due, *link->leave_by);
    } else if (!link->up) {
      due = std::min(due, link->since() + common_.handshake_limit);
    }
  }
  if (!retired_.empty() || closing_) due = std::min(due, now_ + closing_nap);
  return due;
}

bool port_loop::take_commands() {
  std::vector<command> commands = box_.take();
  for (command& next : commands) std::visit([this](auto& what) { obey(what); }, next);
  return !commands.empty();
}

void port_loop::obey(send_command& what) {
  const auto found = live_.find(what.to);
  if (found == live_.end() || found->second.generation != what.generation) return;
  found->second.link->send_frame(std::move(what.frame));
}

void port_loop::obey(connect_command& what) {
  if (closing_ || live_.contains(what.peer) || attempts_.contains(what.peer)) return;
  const auto remote = parse_address(what.address);
  if (!remote) {
    handler_.on_peer_lost(what.peer, remote.error());
    return;
  }
  attempts_.emplace(what.peer, attempt{what.address, *remote, what.deadline, now_ + what.deadline,
                                       now_, 0ms, "", nullptr});
}

void port_loop::obey(disconnect_command& what) {
  const auto found = live_.find(what.peer);
  if (found != live_.end()) return lose(*found->second.link, what.reason);
  const auto looking = attempts_.find(what.peer);
  if (looking == attempts_.end()) return;
  if (looking->second.current != nullptr) retire(*looking->second.current);
  end_attempt(what.peer, what.reason);
}

void port_loop::obey(close_command& what) {
  closing_ = now_ + what.deadline;
  attempts_.clear();
}

/// Says goodbye to every peer whose frames are through; true when nothing is left to wait for.
bool port_loop::closing_done() {
  if (!closing_) return false;
  bool waiting = false;
  for (const auto& link : connections_) {
    // A peer that left just now must have read that this was seen: it goes first.
    if (link->leave_by && link->goodbye_seen) waiting = true;
    if (!link->up || link->goodbye_seen) continue;
    waiting = true;
    if (link->goodbye_sent || !link->drained()) continue;
    control_message goodbye;
    goodbye.kind = control_kind::goodbye;
    goodbye.frames = link->frames_sent();
    link->send_control(pack(goodbye));
    link->goodbye_sent = true;
  }
  return !waiting || std::chrono::steady_clock::now() >= *closing_;
}

}  // namespace cedar::transport::ucx
