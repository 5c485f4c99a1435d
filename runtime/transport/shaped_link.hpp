// When the frames of one direction of an emulated link arrive.
//
// A frame departs when those before it have left, takes its bytes' time at the link's bandwidth,
// then latency and jitter. Frames stay in order, as on one TCP connection: whoever is late makes
// those behind it late. A frame travels in packets; of those that are lost, TCP's timeout passes
// until they are sent again, and twice as long after every further loss:
//   timeout = 2 latency + jitter + max(200 ms, jitter)
// It is the round trip plus the larger of Linux's least margin and four mean deviations of a round
// trip (RFC 6298), with one direction's numbers taken for both; the mean deviation of a uniform
// jitter is a quarter of it. To the bad side: a real connection that is busy notices sooner. What
// is sent again takes no bandwidth.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>

#include "runtime/base/ids.hpp"
#include "runtime/base/link_shape.hpp"

namespace cedar::transport {

/// Bytes of a frame in one packet: an Ethernet frame of 1500 bytes less the headers of IPv4 and of
/// TCP with timestamps.
inline constexpr std::uint64_t packet_bytes = 1448;
/// A packet lost as often in a row is not sent again: the link is given up, after 63 timeouts in
/// all, 12.6 s where latency and jitter are small. (Linux goes on for 15 minutes.)
inline constexpr unsigned losses_in_a_row_max = 6;

/// How long a lost packet is waited for the first time.
std::chrono::nanoseconds retransmission_timeout(const link_shape& shape);

class shaped_link {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  struct passage {
    time_point due;  ///< of the arrival, or of the giving up
    unsigned losses = 0;  ///< in a row, of the packet that was lost most often
    bool given_up = false;
  };

  /// The direction from `self` to `peer`: each has luck of its own, which `seed` repeats.
  shaped_link(const link_shape& shape, std::uint64_t seed, node_id self, node_id peer);

  /// A frame of `bytes` handed over at `now`, which never goes back. The same seed and sequence of
  /// calls give the same passages.
  passage take(time_point now, std::uint64_t bytes);

  /// From now on the link is free: a new connection.
  void clear();

  const link_shape& shape() const noexcept { return shape_; }

 private:
  double draw();
  unsigned losses_of(std::uint64_t bytes);

  const link_shape shape_;
  std::mt19937_64 random_;
  time_point free_{};  ///< the last frame has left
  time_point last_due_{};
};

}  // namespace cedar::transport
