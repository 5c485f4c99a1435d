// What this machine can do at most, measured: reading memory, and fused multiply-adds of binary32.
//
// 1. The best of several ways to do each is found once (calibrate()); samples of it are then taken
//    beside what is judged, so that a noisy neighbour or a clock that sinks falls on both.
// 2. Nothing here uses the kernels' own code or the choice of instructions that it makes.
// 3. One thread is timed by its CPU time, several by the clock on the wall.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "tools/cedar/bench_memory.hpp"

namespace cedar::tools {

/// Seconds of this thread's CPU time for `threads` 1, else on the wall.
double seconds_now(std::uint32_t threads);
/// Seconds that `call` takes, by that clock.
double seconds_of(std::uint32_t threads, const std::function<void()>& call);

class ceilings {
 public:
  /// `narrow`: nothing beyond 256 bits. Requires x86-64 with AVX2 and FMA.
  ceilings(stream_memory& memory, std::uint32_t threads, bool narrow);

  /// Bytes a second, of the next `bytes` of the memory.
  double read_sample(std::size_t bytes);
  /// Floating-point operations a second (an addition and a multiplication each), about a
  /// millisecond.
  double fma_sample();

  /// The best that any way reached.
  double best_read() const noexcept { return best_read_; }
  double best_fma() const noexcept { return best_fma_; }
  /// For people: "512 bits, 4 streams, 2048 bytes ahead".
  std::string reading() const;
  std::string multiplying() const;

 private:
  void calibrate(bool narrow);

  stream_memory& memory_;
  std::uint32_t threads_;
  std::size_t read_way_ = 0;
  std::size_t fma_way_ = 0;
  double best_read_ = 0;
  double best_fma_ = 0;
};

}  // namespace cedar::tools
