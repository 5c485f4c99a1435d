#include "tools/cedar/logit_distance.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/check.hpp"

namespace cedar::tools {

namespace {

/// log of the sum of exp(logit).
double log_sum(std::span<const float> logits) {
  const double highest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  return highest + std::log(sum);
}

}  // namespace

token_id top1(std::span<const float> logits) noexcept {
  return static_cast<token_id>(std::ranges::max_element(logits) - logits.begin());
}

void logit_distance::add(std::span<const float> reference, std::span<const float> other) {
  CEDAR_REQUIRE(!reference.empty() && reference.size() == other.size(), "rows of one vocabulary");
  const double reference_sum = log_sum(reference);
  const double other_sum = log_sum(other);
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double a = reference[i];
    const double b = other[i];
    difference_ += (a - b) * (a - b);
    reference_ += a * a;
    kl_ += std::exp(a - reference_sum) * ((a - reference_sum) - (b - other_sum));
  }
  agreeing_ += top1(reference) == top1(other);
  ++rows_;
}

double logit_distance::relative_rms() const noexcept {
  return reference_ > 0 ? std::sqrt(difference_ / reference_) : 0;
}

double logit_distance::mean_kl() const noexcept {
  return rows_ > 0 ? kl_ / static_cast<double>(rows_) : 0;
}

double logit_distance::top1_agreement() const noexcept {
  return rows_ > 0 ? static_cast<double>(agreeing_) / static_cast<double>(rows_) : 1;
}

}  // namespace cedar::tools
