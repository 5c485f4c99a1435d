// Between any thread and the port's: what is to be done, and what the peers' state is.
//
// 1. Threads that send see the same table of peers that the port's thread writes: a frame is queued
//    for the connection that is up now, or dropped and counted.
// 2. The port's thread is woken only if it sleeps.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/flow/frame.hpp"
#include "runtime/transport/port.hpp"

namespace cedar::transport::ucx {

struct send_command {
  node_id to;
  std::uint64_t generation;  ///< of the connection it was queued for
  flow::frame frame;
};
struct connect_command {
  node_id peer;
  std::string address;
  std::chrono::milliseconds deadline;
};
struct disconnect_command {
  node_id peer;
  error reason;
};
struct close_command {
  std::chrono::milliseconds deadline;
};
using command = std::variant<send_command, connect_command, disconnect_command, close_command>;

class mailbox {
 public:
  /// `queue_bytes_max`: per peer.
  explicit mailbox(std::size_t queue_bytes_max);
  ~mailbox();
  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;

  // --- any thread
  // ----------------------------------------------------------------------------------
  void send(node_id to, flow::frame frame);
  void post(command what);
  port_statistics statistics() const;

  // --- the port's thread
  // ---------------------------------------------------------------------------
  std::vector<command> take();

  /// To be called before sleeping: true if nothing waits; from then on a command wakes event_fd().
  bool may_sleep();
  /// Awake again.
  void woke();
  int event_fd() const { return event_fd_; }

  /// The connection with this peer is up; returns its generation.
  std::uint64_t peer_up(node_id peer, const std::string& name, const std::string& transport);
  void peer_down(node_id peer);
  void note_sent(node_id peer, std::uint64_t frames, std::uint64_t bytes);
  void note_received(node_id peer, std::uint64_t bytes);
  void note_strangers(std::uint64_t frames);
  void note_frame_refused();
  void note_connection_refused(const std::string& why);

 private:
  struct peer_entry {
    peer_statistics statistics;
    std::uint64_t generation = 0;
    bool overflowed = false;
  };
  void wake();

  const std::size_t queue_bytes_max_;
  int event_fd_;
  std::atomic<bool> sleeping_{false};
  mutable std::mutex mutex_;
  std::vector<command> commands_;
  std::map<node_id, peer_entry> peers_;
  port_statistics totals_;  ///< without peers
};

}  // namespace cedar::transport::ucx
