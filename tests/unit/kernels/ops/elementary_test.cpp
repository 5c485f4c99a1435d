// Goal: logarithm and exponential are accurate over their whole range, and have the same bits
// everywhere. Method: long double functions of the host as the judge; a recorded hash of results.
#include "kernels/ops/elementary.hpp"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <random>

using namespace cedar::kernels;

namespace {

/// |actual - expected| in units of the last place of expected.
double ulps(double actual, long double expected) {
  const double rounded = std::fabs(static_cast<double>(expected));
  const double ulp = std::nextafter(rounded, std::numeric_limits<double>::infinity()) - rounded;
  return static_cast<double>(std::fabs(actual - expected) / ulp);
}

/// FNV-1a over the bits of many results.
class bits_hash {
 public:
  void add(double value) {
    value_ = (value_ ^ std::bit_cast<std::uint64_t>(value)) * 0x100000001b3U;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(elementary)

BOOST_AUTO_TEST_CASE(logarithm_is_within_an_ulp) {
  std::mt19937_64 random(1);
  double worst = 0;
  bits_hash hash;
  for (int i = 0; i < 400'000; ++i) {
    // Every binade; near 1; and as noise uses it: numbers below 1.
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    const auto exponent = static_cast<int>(random() % 2044) - 1021;
    for (const double x :
         {std::ldexp(1 + unit, exponent), 1 + std::ldexp(unit - 0.5, -i % 50), unit + 0x1p-54}) {
      const double y = natural_log(x);
      worst = std::max(worst, ulps(y, std::log(static_cast<long double>(x))));
      hash.add(y);
    }
  }
  BOOST_TEST_MESSAGE("natural_log: " << worst << " ulp");
  BOOST_TEST(worst < 1);
  BOOST_TEST(hash.value() == 10447553241551238381U);
  BOOST_TEST(natural_log(1) == 0);
  BOOST_TEST(natural_log(1 - 0x1p-53) == -0x1p-53);
}

BOOST_AUTO_TEST_CASE(exponential_is_within_an_ulp) {
  std::mt19937_64 random(1);
  double worst = 0;
  bits_hash hash;
  for (int i = 0; i < 400'000; ++i) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    for (const double x : {-708 * unit, -unit, -std::ldexp(unit, -i % 60)}) {
      const double y = natural_exp(x);
      worst = std::max(worst, ulps(y, std::exp(static_cast<long double>(x))));
      hash.add(y);
    }
  }
  BOOST_TEST_MESSAGE("natural_exp: " << worst << " ulp");
  BOOST_TEST(worst < 1);
  BOOST_TEST(hash.value() == 4522176663467944032U);
  BOOST_TEST(natural_exp(0) == 1);
  BOOST_TEST(natural_exp(-708) > 0);
  BOOST_TEST(natural_exp(-708.01) == 0);
  BOOST_TEST(natural_exp(-std::numeric_limits<double>::infinity()) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
