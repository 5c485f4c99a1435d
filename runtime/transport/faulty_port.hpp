// A port that loses, delays, doubles, swaps and corrupts frames on purpose, by seed: for tests.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <vector>

#include "runtime/transport/port.hpp"

namespace cedar::transport {

/// Probabilities per frame sent, each decided on its own.
struct fault_plan {
  std::uint64_t seed = 0;
  double drop = 0;
  double duplicate = 0;
  double reorder = 0;  ///< the frame lets the next one to the same peer pass
  double corrupt = 0;  ///< one bit of header or payload is flipped
  double delay = 0;  ///< by a uniform time up to delay_max; later frames may overtake
  double disconnect = 0;  ///< the peer is given up instead of sending
  std::chrono::nanoseconds delay_max{0};
};

struct fault_counts {
  std::uint64_t sent = 0;  ///< frames handed in
  std::uint64_t dropped = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t delayed = 0;
  std::uint64_t disconnected = 0;
};

/// Decorates a port; faults happen on the sending side. The same seed, clock and calls give the
/// same faults.
class faulty_port final : public port {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// `inner` and whatever `now` refers to outlive it.
  faulty_port(port& inner, const fault_plan& plan, std::function<time_point()> now);

  node_id self() const override;
  std::string address() const override;
  void connect(node_id peer, const std::string& address,
               std::chrono::milliseconds deadline) override;
  void send(node_id to, flow::frame frame) override;
  void disconnect(node_id peer, const error& reason) override;
  /// Frames still held back are sent first.
  result<void> close(std::chrono::milliseconds deadline) override;
  port_statistics statistics() const override;

  /// Sends the delayed frames whose time has come; with `everything`, also those held back to be
  /// overtaken.
  void release(bool everything = false);

  /// No faults from now on. What is held back stays so until release().
  void calm();

  fault_counts counts() const;

 private:
  struct held_frame {
    node_id to;
    flow::frame frame;
    time_point due;
    bool until_overtaken;
  };
  bool happens(double probability);
  void corrupt(flow::frame& frame);
  void release_overtaken(node_id to);
  void send_or_hold(node_id to, flow::frame frame);

  port& inner_;
  fault_plan plan_;
  const std::function<time_point()> now_;
  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  std::deque<held_frame> held_;
  fault_counts counts_;
};

}  // namespace cedar::transport
