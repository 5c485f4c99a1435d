// What a network does to frames on their way from one node to another, in numbers: the plan prices
// cuts by it, and transport/shaped_port.hpp imposes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace cedar {

/// One direction of a link. By default a perfect one.
struct link_shape {
  std::chrono::nanoseconds latency{0};  ///< one way
  std::chrono::nanoseconds jitter{0};  ///< on top of it, uniform from 0 to this
  double bytes_per_second = 0;  ///< 0: without limit
  double loss = 0;  ///< probability that a packet is lost, 0 to 1

  /// Time that `bytes` keep the link busy.
  std::chrono::nanoseconds occupancy(std::uint64_t bytes) const;
  /// From handing them over at a free link until they have arrived, without jitter and loss.
  std::chrono::nanoseconds passage(std::uint64_t bytes) const { return latency + occupancy(bytes); }

  friend bool operator==(const link_shape&, const link_shape&) = default;
};

/// "20 ms, 1000 Mbit/s, jitter 2 ms, loss 0.1 %": the latency, and whatever else is not perfect.
std::string to_string(const link_shape& shape);

}  // namespace cedar
