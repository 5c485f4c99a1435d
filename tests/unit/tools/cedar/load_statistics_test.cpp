// Goal: percentiles are values that were measured, of the rank that their name says; arrivals are a
// Poisson process that a seed repeats. Method: lists small enough to count by hand; counting all
// values below a percentile; moments of many gaps, with bounds of five standard deviations.
#include "tools/cedar/load_statistics.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

using namespace cedar::tools;

BOOST_AUTO_TEST_SUITE(load_statistics)

BOOST_AUTO_TEST_CASE(percentiles_of_a_few_values) {
  const std::vector<double> ten{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  BOOST_TEST(percentile(ten, 50) == 5);
  BOOST_TEST(percentile(ten, 51) == 6);
  BOOST_TEST(percentile(ten, 90) == 9);
  BOOST_TEST(percentile(ten, 99) == 10);
  BOOST_TEST(percentile(ten, 100) == 10);
  BOOST_TEST(percentile(ten, 0.001) == 1);
  BOOST_TEST(percentile(std::vector<double>{7}, 50) == 7);
  BOOST_TEST(percentile(std::vector<double>{7}, 99) == 7);
  BOOST_TEST(percentile({}, 50) == 0);
  BOOST_TEST(percentile(std::vector<double>{1, 2}, 50) == 1);
}

BOOST_AUTO_TEST_CASE(as_many_values_as_it_says_are_not_above_a_percentile) {
  std::mt19937_64 random(1);
  for (std::size_t count = 1; count <= 230; ++count) {
    std::vector<double> values(count);
    for (double& value : values) value = static_cast<double>(random() % 1000);
    std::ranges::sort(values);
    for (std::size_t percent = 1; percent <= 100; ++percent) {
      const double found = percentile(values, static_cast<double>(percent));
      const auto not_above = std::ranges::upper_bound(values, found) - values.begin();
      const auto below = std::ranges::lower_bound(values, found) - values.begin();
      BOOST_REQUIRE(100 * static_cast<std::size_t>(not_above) >= percent * count);
      BOOST_REQUIRE(100 * static_cast<std::size_t>(below) < percent * count);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_summary_takes_values_in_any_order) {
  const distribution found = summarize({4, 1, 3, 2});
  BOOST_TEST(found.count == 4U);
  BOOST_TEST(found.mean == 2.5);
  BOOST_TEST(found.p50 == 2);
  BOOST_TEST(found.p90 == 4);
  BOOST_TEST(found.p99 == 4);
  BOOST_TEST(found.max == 4);
  BOOST_TEST(summarize({}).count == 0U);
}

BOOST_AUTO_TEST_CASE(arrivals_repeat_by_seed) {
  poisson_arrivals first(10, 7), second(10, 7), other(10, 8);
  bool differ = false;
  for (int i = 0; i < 100; ++i) {
    const auto time = first.next();
    BOOST_TEST(time.count() == second.next().count());
    differ = differ || time != other.next();
  }
  BOOST_TEST(differ);
}

BOOST_AUTO_TEST_CASE(gaps_between_arrivals_are_exponential) {
  constexpr int count = 100'000;
  constexpr double rate = 250;
  poisson_arrivals arrivals(rate, 3);
  double before = 0;
  double squares = 0;
  int above_mean = 0;
  for (int i = 0; i < count; ++i) {
    const double now = std::chrono::duration<double>(arrivals.next()).count();
    const double gap = (now - before) * rate;
    BOOST_REQUIRE(gap >= 0);
    squares += gap * gap;
    above_mean += gap > 1 ? 1 : 0;
    before = now;
  }
  const double root = std::sqrt(static_cast<double>(count));
  // Of an exponential variable of mean 1: standard deviation 1, that of its square sqrt(20); it is
  // above 1 with probability 1/e.
  BOOST_TEST(std::abs(before * rate / count - 1) < 5 / root);
  BOOST_TEST(std::abs(squares / count - 2) < 5 * std::sqrt(20) / root);
  BOOST_TEST(std::abs(static_cast<double>(above_mean) / count - std::exp(-1)) < 5 * 0.5 / root);
}

BOOST_AUTO_TEST_SUITE_END()
