#include "tests/numeric/kernels/tolerance.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/support/golden.hpp"

namespace cedar::test {

namespace {

bool check_within(std::string_view what, std::span<const float> actual,
                  std::span<const float> expected, std::span<const double> bounds) {
  BOOST_REQUIRE_EQUAL(actual.size(), expected.size());
  BOOST_REQUIRE_EQUAL(actual.size(), bounds.size());
  std::size_t beyond = 0;
  std::size_t worst = 0;
  double worst_ratio = -1;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error =
        actual[i] == expected[i]
            ? 0
            : std::fabs(static_cast<double>(actual[i]) - static_cast<double>(expected[i]));
    if (error <= bounds[i]) continue;  // false for NaN
    ++beyond;
    const double ratio = std::isnan(error) ? HUGE_VAL : error / bounds[i];
    if (ratio > worst_ratio) {
      worst_ratio = ratio;
      worst = i;
    }
  }
  if (beyond == 0) return true;
  BOOST_TEST(false, what << ": " << beyond << " of " << actual.size()
                         << " elements beyond their bound; worst is [" << worst
                         << "]: " << actual[worst] << ", expected " << expected[worst] << ", bound "
                         << bounds[worst]);
  return false;
}

double larger(float a, float b) {
  return std::max(std::fabs(static_cast<double>(a)), std::fabs(static_cast<double>(b)));
}

}  // namespace

double sum_error(std::size_t length) {
  return (std::ceil(static_cast<double>(length) / 16) + 7) * unit;
}

bool check_float(std::string_view what, std::span<const float> actual,
                 std::span<const float> expected, std::span<const double> errors) {
  std::vector<double> bounds(errors.begin(), errors.end());
  for (std::size_t i = 0; i < std::min(bounds.size(), expected.size()); ++i)
    bounds[i] += unit * std::fabs(static_cast<double>(expected[i]));
  return check_within(what, actual, expected, bounds);
}

bool check_rounding(std::string_view what, std::span<const kernels::bf16> actual,
                    std::span<const float> exact, std::span<const double> errors) {
  const std::vector<float> values = widened(actual);
  std::vector<double> bounds(errors.begin(), errors.end());
  for (std::size_t i = 0; i < std::min(bounds.size(), values.size()); ++i) {
    const double size = larger(values[i], exact[i]);
    bounds[i] += bf16_ulp(size) / 2 + unit * size;
  }
  return check_within(what, values, exact, bounds);
}

bool check_half(std::string_view what, std::span<const kernels::bf16> actual,
                std::span<const kernels::bf16> expected, std::span<const double> errors,
                double share) {
  const std::vector<float> values = widened(actual);
  const std::vector<float> others = widened(expected);
  std::vector<double> bounds(errors.begin(), errors.end());
  std::size_t different = 0;
  for (std::size_t i = 0; i < std::min(bounds.size(), values.size()); ++i) {
    bounds[i] += bf16_ulp(larger(values[i], others[i]));
    if (values[i] != others[i]) ++different;
  }
  const double allowed = 2 + share * static_cast<double>(values.size());
  const bool few = static_cast<double>(different) <= allowed;
  BOOST_TEST(few, what << ": " << different << " of " << values.size()
                       << " elements differ, allowed " << allowed);
  return check_within(what, values, others, bounds) && few;
}

std::vector<double> scaled(double factor, std::span<const float> values, double floor) {
  std::vector<double> out;
  for (const float value : values)
    out.push_back(factor * std::fabs(static_cast<double>(value)) + floor);
  return out;
}

std::vector<double> scaled(double factor, std::span<const kernels::bf16> values, double floor) {
  return scaled(factor, widened(values), floor);
}

}  // namespace cedar::test
