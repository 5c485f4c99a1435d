// Starts, talks to, and always ends the other process; and the handler of this one.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/transport/ucx/ucx_port.hpp"
#include "tests/integration/runtime/transport/test_frame.hpp"

namespace cedar::transport::test {

using namespace std::chrono_literals;

/// Longest wait for what should take milliseconds; the machine may be busy.
inline constexpr auto patience = 20s;

struct peer_options {
  std::string carry = "network";  ///< or "shared"
  std::uint32_t node = 2;
  std::string name = "peer";
  std::string secret = "s";
  int silence_ms = 1000;
  std::size_t frame_bytes_max = std::size_t{64} << 20;
};

class peer_process {
 public:
  explicit peer_process(const peer_options& options);
  /// Kills it, whatever state it is in, and waits for its end.
  ~peer_process();
  peer_process(const peer_process&) = delete;
  peer_process& operator=(const peer_process&) = delete;

  const std::string& address() const { return address_; }
  pid_t pid() const { return pid_; }
  void tell(const std::string& line);
  /// From its return on, frames come back.
  void echo();
  void signal(int number);
  /// The next line that begins so; others are skipped. Empty: none within the time.
  std::string expect(const std::string& beginning, std::chrono::milliseconds within = patience);
  /// Processor time used so far.
  std::chrono::nanoseconds cpu_time() const;

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
  std::string unread_;
  std::string address_;
};

/// True as soon as the condition is; false if it is not within our patience.
template <class Condition>
bool eventually(Condition&& condition) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

/// Waits for events from any thread.
class waiting_handler : public port_handler {
 public:
  void on_frame(node_id from, flow::received_frame frame) override;
  void on_peer_up(node_id peer) override;
  void on_peer_lost(node_id peer, const error& reason) override;

  bool wait_up(std::size_t count = 1, std::chrono::milliseconds within = patience);
  bool wait_lost(std::size_t count = 1, std::chrono::milliseconds within = patience);
  bool wait_frames(std::size_t count, std::chrono::milliseconds within = patience);

  error reason(std::size_t index = 0);
  std::vector<flow::received_frame> take_frames();
  std::size_t ups();
  std::size_t losses();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<flow::received_frame> frames_;
  std::vector<error> reasons_;
  std::size_t ups_ = 0;
};

/// Node 1, "here", in this process.
struct this_node {
  explicit this_node(const std::string& carry = "network", const std::string& secret = "s");

  port_options options;
  ucx::ucx_options network;
  waiting_handler events;
  std::unique_ptr<port> door;

  /// open(), which must succeed.
  void open();
  /// connect() to the peer, and both sides know.
  void connect(peer_process& peer);
};

inline const node_id here{1}, there{2};

}  // namespace cedar::transport::test
