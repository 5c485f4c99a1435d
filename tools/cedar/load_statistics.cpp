#include "tools/cedar/load_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "kernels/base/check.hpp"

namespace cedar::tools {

double percentile(std::span<const double> sorted, double percent) {
  CEDAR_REQUIRE(percent > 0 && percent <= 100, std::to_string(percent));
  if (sorted.empty()) return 0;
  // Multiplied first: 0.9 * 10 is above 9 in binary.
  const double rank = std::ceil(percent * static_cast<double>(sorted.size()) / 100);
  return sorted[static_cast<std::size_t>(rank) - 1];
}

distribution summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {values.size(),          sum / static_cast<double>(values.size()),
          percentile(values, 50), percentile(values, 90),
          percentile(values, 99), values.back()};
}

std::chrono::nanoseconds poisson_arrivals::next() {
  // In [0, 1), by the bits of a double: std::exponential_distribution differs between libraries.
  const double uniform = static_cast<double>(random_() >> 11) * 0x1p-53;
  seconds_ += -std::log1p(-uniform) / rate_;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds_));
}

}  // namespace cedar::tools
