// How long a message and its answer take between two processes of this host, with nothing but the
// transport in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/transport/ucx/ucx_port.hpp"

namespace cedar::tools {

struct round_options {
  std::uint64_t there_bytes = 0;  ///< payload of the message
  std::uint64_t back_bytes = 0;  ///< payload of the answer
  std::uint32_t rounds = 200;
  transport::ucx::ucx_options ucx;
};

struct round_times {
  /// One after the other without a pause, sent from the port's own thread: both ends are awake.
  std::vector<double> awake_us;
  /// Sent by another thread after work on `work_bytes` of memory, as a stage sends: both ends sleep
  /// until it comes, and nothing of them is left in the caches.
  std::vector<double> worked_us;
  std::string transport;  ///< what UCX chose
};

/// Larger than the caches of today's processors; takes far longer than a port looks before it
/// sleeps (20 us).
inline constexpr std::size_t work_bytes = std::size_t{64} << 20;

/// Starts the other process (this program again), plays `rounds` rounds of either kind, ends it.
/// Errors: io, timeout, peer_lost, refused.
result<round_times> measure_rounds(const round_options& options);

/// The other process: answers whatever comes from the process at `address` until that goes away.
/// Errors: not_found, io (the secret); timeout, peer_lost, refused before anything came.
result<void> answer_rounds(const std::string& address, const std::string& secret_file,
                           const transport::ucx::ucx_options& ucx);

}  // namespace cedar::tools
