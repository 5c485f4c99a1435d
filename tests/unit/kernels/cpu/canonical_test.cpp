// Goal: the canonical order is what its text says, and the canonical functions are accurate.
// Method: sums whose result depends on the order; functions against the host's binary64 libm, in
// units of the last place of binary32.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/base/check.hpp"
#include "kernels/cpu/canonical_math.hpp"
#include "kernels/cpu/canonical_sum.hpp"

namespace {

namespace canonical = cedar::kernels::canonical;

/// Distance in units of the last place that binary32 has at `exact`.
double ulps(double exact, float actual) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(static_cast<double>(actual) - exact) / unit;
}

/// Largest distance over x = first, first + step, ... < last.
template <class Exact, class Actual>
double worst(float first, float last, float step, const Exact& exact, const Actual& actual) {
  double result = 0;
  for (float x = first; x < last; x += step)
    result = std::max(result, ulps(exact(static_cast<double>(x)), actual(x)));
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(canonical_sums)

BOOST_AUTO_TEST_CASE(an_element_belongs_to_lane_k_mod_16) {
  // 2^24 and 1 in one lane lose the 1; in different lanes 16 ones together survive.
  std::vector<float> same_lane(48, 0.0F);
  same_lane[0] = 0x1p24F;
  same_lane[16] = 1;
  same_lane[32] = 1;
  const std::vector<float> ones(48, 1.0F);
  BOOST_TEST(canonical::dot(same_lane, ones) == 0x1p24F);
  std::vector<float> other_lane(48, 0.0F);
  other_lane[0] = 0x1p24F;
  other_lane[17] = 1;
  other_lane[33] = 1;
  BOOST_TEST(canonical::dot(other_lane, ones) == 0x1p24F + 2);
}

BOOST_AUTO_TEST_CASE(lanes_are_added_by_the_tree) {
  // Lanes 0 and 8 meet first and cancel; any other order would have swallowed the 1 in lane 4.
  std::vector<float> a(16, 0.0F);
  a[0] = 0x1p30F;
  a[8] = -0x1p30F;
  a[4] = 1;
  const std::vector<float> ones(16, 1.0F);
  BOOST_TEST(canonical::dot(a, ones) == 1.0F);
  std::swap(a[8], a[4]);
  BOOST_TEST(canonical::dot(a, ones) == 0.0F);
}

BOOST_AUTO_TEST_CASE(segments_are_summed_separately_and_in_order) {
  // In one segment the lanes of both halves cancel before the tree; in two they do not.
  std::vector<float> a(32, 0.0F);
  a[0] = 0x1p24F;
  a[1] = 1;
  a[16] = -0x1p24F;
  const std::vector<float> ones(32, 1.0F);
  BOOST_TEST(canonical::dot(a, ones, 1) == 1.0F);
  BOOST_TEST(canonical::dot(a, ones, 2) == 0.0F);
}

BOOST_AUTO_TEST_CASE(products_are_fused) {
  const float x = 1.0F + 0x1p-12F;
  const std::vector<float> a = {-1.0F};
  canonical::lane_sum sum;
  sum.add_product(-1.0F, 1.0F + 0x1p-11F);
  for (int lane = 1; lane < 16; ++lane) sum.add(0);
  sum.add_product(x, x);
  BOOST_TEST(sum.total() == 0x1p-24F);
}

BOOST_AUTO_TEST_CASE(refuses_unequal_lengths) {
  const std::vector<float> a(4);
  const std::vector<float> b(5);
  BOOST_CHECK_THROW(canonical::dot(a, b), cedar::defect);
  BOOST_CHECK_THROW(canonical::dot(a, a, 3), cedar::defect);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(canonical_functions)

BOOST_AUTO_TEST_CASE(exp_is_within_one_ulp) {
  const auto exact = [](double x) { return std::exp(x); };
  BOOST_TEST(worst(-103.9F, 88.7F, 1.7e-4F, exact, canonical::exp) < 1.0);
  BOOST_TEST(worst(-1.0F, 1.0F, 3e-6F, exact, canonical::exp) < 1.0);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  BOOST_TEST(canonical::exp(0.0F) == 1.0F);
  BOOST_TEST(canonical::exp(88.73F) == infinity);
  BOOST_TEST(canonical::exp(infinity) == infinity);
  BOOST_TEST(canonical::exp(-104.0F) == 0.0F);
  BOOST_TEST(canonical::exp(-infinity) == 0.0F);
}

BOOST_AUTO_TEST_CASE(log1p_is_correctly_rounded_almost_everywhere) {
  double result = 0;
  for (float x = 1e-12F; x < 6e8F; x *= 1.00011F)
    result = std::max(result, ulps(std::log1p(static_cast<double>(x)), canonical::log1p(x)));
  BOOST_TEST(result < 0.51);
  BOOST_TEST(canonical::log1p(0.0F) == 0.0F);
}

BOOST_AUTO_TEST_CASE(sigmoid_and_softplus_are_accurate) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  BOOST_TEST(worst(-87.0F, 87.0F, 1.3e-4F, sigmoid, canonical::sigmoid) < 2.5);
  const auto softplus = [](double x) { return std::log1p(std::exp(x)); };
  BOOST_TEST(worst(-87.0F, 20.0F, 1.3e-4F, softplus, canonical::softplus) < 2.0);
  BOOST_TEST(canonical::softplus(20.5F) == 20.5F);
  BOOST_TEST(canonical::sigmoid(-200.0F) == 0.0F);
  BOOST_TEST(canonical::sigmoid(200.0F) == 1.0F);
}

BOOST_AUTO_TEST_CASE(rotations_are_accurate_up_to_two_to_the_20) {
  double result = 0;
  for (float x = 0; x < 0x1p20F; x += 0.731F + x * 1e-6F) {
    const canonical::rotation turn = canonical::rotate_by(x);
    result = std::max({result, ulps(std::cos(static_cast<double>(x)), turn.cosine),
                       ulps(std::sin(static_cast<double>(x)), turn.sine)});
  }
  BOOST_TEST(result < 0.51);
}

BOOST_AUTO_TEST_CASE(gelu_is_correctly_rounded_almost_everywhere) {
  const auto exact = [](double x) { return 0.5 * x * std::erfc(-x * 0.70710678118654752440); };
  BOOST_TEST(worst(-12.9F, 9.0F, 1.3e-4F, exact, canonical::gelu) < 0.51);
  BOOST_TEST(worst(-0.01F, 0.01F, 1e-7F, exact, canonical::gelu) < 0.51);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  BOOST_TEST(canonical::gelu(0.0F) == 0.0F);
  BOOST_TEST(canonical::gelu(-40.0F) == 0.0F);
  BOOST_TEST(canonical::gelu(1e30F) == 1e30F);
  BOOST_TEST(canonical::gelu(-1e30F) == 0.0F);
  BOOST_TEST(canonical::gelu(infinity) == infinity);
}

BOOST_AUTO_TEST_CASE(nan_stays_nan) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  BOOST_TEST(std::isnan(canonical::exp(nan)));
  BOOST_TEST(std::isnan(canonical::gelu(nan)));
  BOOST_TEST(std::isnan(canonical::log1p(nan)));
  BOOST_TEST(std::isnan(canonical::sigmoid(nan)));
  BOOST_TEST(std::isnan(canonical::softplus(nan)));
}

BOOST_AUTO_TEST_SUITE_END()
