#include "runtime/session/draft_calibration.hpp"

#include <algorithm>

namespace cedar::session {

namespace {

constexpr double prior_weight = 8;  ///< observations that a confidence is worth
constexpr double seen_max = 256;

double known(float confidence) {
  constexpr double unknown = 0.5;
  return confidence >= 0 && confidence <= 1 ? static_cast<double>(confidence) : unknown;
}

std::size_t bin_of(double confidence, std::size_t bins) {
  return std::min(static_cast<std::size_t>(confidence * static_cast<double>(bins)), bins - 1);
}

}  // namespace

double draft_calibration::probability(std::size_t place, float confidence) const {
  const double estimate = known(confidence);
  if (place >= places_.size()) return estimate;
  const counts& bin = places_[place][bin_of(estimate, bins)];
  return (prior_weight * estimate + bin.accepted) / (prior_weight + bin.seen);
}

void draft_calibration::observe(std::size_t place, float confidence, bool accepted) {
  if (place >= places_.size()) places_.resize(place + 1);
  counts& bin = places_[place][bin_of(known(confidence), bins)];
  bin.seen += 1;
  if (accepted) bin.accepted += 1;
  if (bin.seen < seen_max) return;
  bin.seen /= 2;
  bin.accepted /= 2;
}

}  // namespace cedar::session
