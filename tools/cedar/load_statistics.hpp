// What a load of requests is made of, and what its times come to.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace cedar::tools {

/// The smallest of `sorted` (ascending) that at least `percent` of 100 of them do not exceed: the
/// one of rank ceil(percent / 100 * count), counted from 1 (nearest rank; never a value between two
/// that were measured). 0 if there are none. Requires 0 < percent <= 100.
double percentile(std::span<const double> sorted, double percent);

struct distribution {
  std::uint64_t count = 0;
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
};

/// All zero if there are no values.
distribution summarize(std::vector<double> values);

/// The times at which a Poisson process has its events: the gaps between them are independent and
/// exponential. The same seed gives the same times on every machine.
class poisson_arrivals {
 public:
  /// `rate`: events a second on average, above 0.
  poisson_arrivals(double rate, std::uint64_t seed) : rate_(rate), random_(seed) {}

  /// The next event, from the beginning of the process.
  std::chrono::nanoseconds next();

 private:
  double rate_;
  std::mt19937_64 random_;
  double seconds_ = 0;
};

}  // namespace cedar::tools
