// Goal: the numbers of an evaluation are what their names say. Method: sums by hand.
#include "tools/cedar/logit_distance.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

using namespace cedar;
using namespace cedar::tools;

BOOST_AUTO_TEST_SUITE(logit_distance_unit)

BOOST_AUTO_TEST_CASE(equal_rows_have_no_distance) {
  logit_distance distance;
  BOOST_TEST(distance.relative_rms() == 0.0);
  BOOST_TEST(distance.top1_agreement() == 1.0);
  const std::vector<float> row{1, -2, 3};
  distance.add(row, row);
  BOOST_TEST(distance.rows() == 1U);
  BOOST_TEST(distance.relative_rms() == 0.0);
  BOOST_TEST(distance.mean_kl() == 0.0);
  BOOST_TEST(distance.top1_agreement() == 1.0);
}

BOOST_AUTO_TEST_CASE(distances_are_those_of_their_formulas) {
  logit_distance distance;
  // p = (1/4, 3/4), q = (1/2, 1/2).
  const std::vector<float> p{0, std::log(3.0F)}, q{5, 5};
  distance.add(p, q);
  const double kl = 0.25 * std::log(0.5) + 0.75 * std::log(1.5);
  BOOST_TEST(distance.mean_kl() == kl, boost::test_tools::tolerance(1e-6));
  const double l = std::log(3.0);
  BOOST_TEST(distance.relative_rms() == std::sqrt((25 + (5 - l) * (5 - l)) / (l * l)),
             boost::test_tools::tolerance(1e-6));
  BOOST_TEST(distance.top1_agreement() == 0.0);  // a tie is the lower id
  distance.add(p, p);
  BOOST_TEST(distance.top1_agreement() == 0.5);
  BOOST_TEST(distance.mean_kl() == kl / 2, boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(large_logits_do_not_overflow) {
  logit_distance distance;
  distance.add(std::vector<float>{1000, 0}, std::vector<float>{1000, 1});
  BOOST_TEST(distance.mean_kl() < 1e-6);
  BOOST_TEST(top1(std::vector<float>{-5, -5, -6}) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
