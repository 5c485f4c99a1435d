// How a link is measured, by questions and answers: round trips of few bytes, then frames of
// growing size one way while few bytes go the other, so that no clocks have to agree.
//
// A size is tried if it will take no longer than 100 ms, going by the size before it. So a link of
// 1 Mbit/s is measured by 8 KiB, and all links from 100 Mbit/s on by 1 MiB. The best of two to five
// exchanges counts, because the first ones on a TCP connection are slow, and a busy processor is no
// slow link; after 100 ms no more than two begin, after a second no more. On loopback all takes
// some 20 ms; over 20 ms one way, some 900 ms.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include "runtime/base/link_measurement.hpp"
#include "runtime/base/result.hpp"

namespace cedar::transport {

/// No frame of a measurement has a larger payload.
inline constexpr std::size_t probe_bytes_max = std::size_t{1} << 20;

/// Sends a payload of `there` bytes to a peer, which answers with one of `back` bytes; returns how
/// long that took.
using probe_exchange =
    std::function<result<std::chrono::nanoseconds>(std::size_t there, std::size_t back)>;

/// Everything but `transport`. Errors: those of `exchange`.
result<link_measurement> probe_link(const probe_exchange& exchange);

}  // namespace cedar::transport
