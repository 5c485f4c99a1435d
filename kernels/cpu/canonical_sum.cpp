#include "kernels/cpu/canonical_sum.hpp"

#include <cmath>

#include "kernels/base/check.hpp"

namespace cedar::kernels::canonical {

void lane_sum::add_product(float a, float b) {
  float& lane = lanes_[next_];
  lane = std::fma(a, b, lane);
  next_ = (next_ + 1) % lanes_count;
}

void lane_sum::add(float value) {
  lanes_[next_] += value;
  next_ = (next_ + 1) % lanes_count;
}

float lane_sum::total() const {
  std::array<float, lanes_count> lanes = lanes_;
  for (std::size_t half = lanes_count / 2; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

float dot(std::span<const float> a, std::span<const float> b, std::size_t segments) {
  CEDAR_REQUIRE(a.size() == b.size() && segments > 0 && a.size() % segments == 0,
                "a dot product needs two equally long vectors of whole segments");
  const std::size_t length = a.size() / segments;
  float total = 0;
  for (std::size_t segment = 0; segment < segments; ++segment) {
    lane_sum sum;
    for (std::size_t k = segment * length; k < (segment + 1) * length; ++k)
      sum.add_product(a[k], b[k]);
    total = segment == 0 ? sum.total() : total + sum.total();
  }
  return total;
}

}  // namespace cedar::kernels::canonical
