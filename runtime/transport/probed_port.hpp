// A port whose links can be measured, over the very connections that frames take.
//
// 1. Frames pass as they are. Questions and answers of a measurement end here: the owner's handler
//    does not see them, statistics do not count them.
// 2. Every such port answers, in the port's thread; one that cannot is silent until it is lost.
// 3. No frame of runtime/wire is taken for a question: its header begins with a Cap'n Proto struct
//    pointer, whose lowest two bits are 0.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/transport/link_probe.hpp"
#include "runtime/transport/port.hpp"

namespace cedar::transport {

class probed_port final : public port, private port_handler {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  /// Opens the port below with the handler that it is given.
  using opener = std::function<result<std::unique_ptr<port>>(port_handler&)>;

  /// `handler` outlives the port. Errors: those of `open`.
  static result<std::unique_ptr<probed_port>> open(port_handler& handler, const opener& open);

  /// Measures the link to `peer` (link_probe.hpp), and waits for it: not in the port's thread. One
  /// measurement at a time; others wait for it. Errors: peer_lost or what else ended the
  /// connection, timeout (no answer by `until`), cancelled (abandon()).
  result<link_measurement> measure(node_id peer, time_point until);

  /// Ends measure(), now and later. From any thread.
  void abandon();

  node_id self() const override;
  std::string address() const override;
  void connect(node_id peer, const std::string& address,
               std::chrono::milliseconds deadline) override;
  void send(node_id to, flow::frame frame) override;
  void disconnect(node_id peer, const error& reason) override;
  result<void> close(std::chrono::milliseconds deadline) override;
  /// Without the frames of measurements.
  port_statistics statistics() const override;

 private:
  /// What measurements added to a peer's statistics.
  struct own_traffic {
    std::uint64_t frames_sent = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t frames_received = 0;
    std::uint64_t bytes_received = 0;
  };
  struct question {
    node_id peer;
    std::uint64_t id = 0;
    std::optional<time_point> answered;
  };

  explicit probed_port(port_handler& handler) : handler_(handler) {}

  void on_frame(node_id from, flow::received_frame frame) override;
  void on_peer_up(node_id peer) override;
  void on_peer_lost(node_id peer, const error& reason) override;

  result<std::chrono::nanoseconds> exchange(node_id peer, std::size_t there, std::size_t back,
                                            time_point until);
  /// Whether it was one of a measurement, and is dealt with.
  bool take(node_id from, const flow::received_frame& frame);
  void send_own(node_id to, std::vector<std::byte> header, std::size_t payload_bytes);

  port_handler& handler_;
  std::mutex measuring_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<node_id, std::optional<error>> peers_;  ///< ever up; why they no longer are
  std::map<node_id, own_traffic> own_;
  std::map<std::size_t, flow::payload_ref> payloads_;  ///< by size
  std::uint64_t last_id_ = 0;
  question asked_;
  bool abandoned_ = false;
  std::unique_ptr<port> inner_;  // first to go: its events come here
};

}  // namespace cedar::transport
