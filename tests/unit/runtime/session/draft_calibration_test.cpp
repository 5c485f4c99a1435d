// Goal: confidences are believed at first, and realised acceptance later. Method: observations by
// hand.
#include "runtime/session/draft_calibration.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

using namespace cedar::session;

BOOST_AUTO_TEST_SUITE(a_draft_calibration)

BOOST_AUTO_TEST_CASE(believes_confidences_at_first) {
  const draft_calibration fresh;
  for (const float confidence : {0.0F, 0.3F, 1.0F})
    BOOST_TEST(fresh.probability(2, confidence) == confidence);
  for (const float unknown : {unknown_confidence, 1.5F, std::nanf("")})
    BOOST_TEST(fresh.probability(0, unknown) == 0.5);
}

BOOST_AUTO_TEST_CASE(learns_by_place_and_confidence) {
  draft_calibration one;
  for (int i = 0; i < 200; ++i) {
    one.observe(0, 0.9F, i % 10 == 0);
    one.observe(1, 0.9F, true);
    one.observe(0, 0.2F, true);
  }
  BOOST_TEST(one.probability(0, 0.9F) < 0.2);
  BOOST_TEST(one.probability(1, 0.9F) > 0.95);
  BOOST_TEST(one.probability(0, 0.2F) > 0.9);
  BOOST_TEST(std::abs(one.probability(2, 0.9F) - 0.9) < 1e-6);
}

BOOST_AUTO_TEST_CASE(follows_what_changes) {
  draft_calibration one;
  for (int i = 0; i < 10'000; ++i) one.observe(0, unknown_confidence, true);
  for (int i = 0; i < 600; ++i) one.observe(0, unknown_confidence, false);
  BOOST_TEST(one.probability(0, unknown_confidence) < 0.2);
}

BOOST_AUTO_TEST_SUITE_END()
