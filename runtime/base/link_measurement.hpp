// What a link was found to do, in numbers: the counterpart of what a file claims of it
// (link_shape.hpp). transport/link_probe.hpp measures it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace cedar {

/// How fast frames of one size pass, either way: their bytes by the time that they take longer than
/// few bytes do. It holds what a frame of this size costs beside the wire, such as the rendezvous
/// of a large one.
struct link_rate {
  std::uint64_t bytes = 0;  ///< of a frame
  double there = 0;  ///< bytes a second, from the node that measured
  double back = 0;  ///< bytes a second, towards it
};

/// Of both directions between two nodes, by one of them.
struct link_measurement {
  std::chrono::nanoseconds round_trip{0};  ///< of link_probe_bytes and as many back: the median
  std::chrono::nanoseconds round_trip_least{0};
  std::vector<link_rate> rates;  ///< by ascending size
  std::string transport;  ///< what carries the frames, e.g. "tcp/lo", as a port's statistics say
};

/// Of a frame that asks how long the way is, without its header.
inline constexpr std::uint64_t link_probe_bytes = 8;

}  // namespace cedar
