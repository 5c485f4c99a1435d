// A port on emulated links: frames arrive as late as a link with the given latency, bandwidth,
// jitter and loss would bring them (shaped_link.hpp), so that a far cluster is tried on one box.
//
// 1. The port's promises stay: frames arrive once and in order, or the peer is reported lost. A
//    link that loses the same packet again and again loses its peer.
// 2. Each port shapes what it sends; a link in both directions is shaped by the ports at both ends.
// 3. Held frames count to the queue limit like those that wait for the network.
// 4. Connections, handshakes and heartbeats belong to the port below and are not shaped: a long or
//    poor link looks like no dead peer.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/transport/port.hpp"
#include "runtime/transport/shaped_link.hpp"

namespace cedar::transport {

struct shape_options {
  node_id self;
  std::map<node_id, link_shape> links;  ///< towards these peers; frames to others pass as they are
  std::uint64_t seed = 0;  ///< of jitter and loss
  std::size_t queue_bytes_max = std::size_t{512} << 20;  ///< as port_options': per peer
};

class shaped_port final : public port, private port_handler {
 public:
  using time_point = shaped_link::time_point;
  /// Opens the port below with the handler that it is given.
  using opener = std::function<result<std::unique_ptr<port>>(port_handler&)>;

  /// `handler` outlives the port, and so does whatever `now` refers to. Nothing arrives until
  /// release() or run(). Errors: those of `open`.
  static result<std::unique_ptr<shaped_port>> open(
      const shape_options& options, port_handler& handler, const opener& open,
      std::function<time_point()> now = std::chrono::steady_clock::now);
  ~shaped_port() override;

  node_id self() const override;
  std::string address() const override;
  void connect(node_id peer, const std::string& address,
               std::chrono::milliseconds deadline) override;
  void send(node_id to, flow::frame frame) override;
  void disconnect(node_id peer, const error& reason) override;
  /// What is held leaves at once: nobody waits for the link of a node that ends.
  result<void> close(std::chrono::milliseconds deadline) override;
  /// Held frames are queued ones; `transport` names the shape and how many losses there were:
  /// "tcp/lo, emulated: 20 ms, loss 1 % (3 lost)".
  port_statistics statistics() const override;

  /// Lets the frames go that have arrived by now. Returns when the next one does, if any is held.
  std::optional<time_point> release();

  /// Does so from a thread of its own from now on, which sleeps in between. `now` must be
  /// steady_clock's.
  void run();

 private:
  struct held_frame {
    shaped_link::passage passage;
    flow::frame frame;
  };
  struct outgoing {
    shaped_link link;
    std::deque<held_frame> held{};  ///< in order of arrival
    std::uint64_t held_bytes = 0;
    std::uint64_t held_bytes_max = 0;
    std::uint64_t losses = 0;
    bool up = false;
    bool given_up = false;  ///< disconnected; the news of it is on its way
  };

  shaped_port(const shape_options& options, port_handler& handler, std::function<time_point()> now);

  void on_frame(node_id from, flow::received_frame frame) override;
  void on_peer_up(node_id peer) override;
  void on_peer_lost(node_id peer, const error& reason) override;

  // With the lock held, also while the port below is called: a frame that is let go must not meet
  // the next connection.
  void give_up(node_id peer, outgoing& to, const std::string& why);
  void let_go(node_id peer, outgoing& to, time_point until);
  std::optional<time_point> release_due();
  /// "node 7 ('back')".
  std::string text_of(node_id peer) const;

  void stop_running();

  const std::size_t queue_bytes_max_;
  port_handler& handler_;
  const std::function<time_point()> now_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<node_id, outgoing> links_;
  std::uint64_t frames_to_nobody_ = 0;
  bool closed_ = false;
  std::thread runner_;
  std::unique_ptr<port> inner_;  // first to go: its events come here
};

}  // namespace cedar::transport
