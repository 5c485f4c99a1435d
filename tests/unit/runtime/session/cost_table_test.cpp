// Goal: times by size as cost_table.hpp says. Method: observations by hand.
#include "runtime/session/cost_table.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

using namespace cedar::session;
using boost::test_tools::tolerance;

BOOST_AUTO_TEST_SUITE(a_cost_table)

BOOST_AUTO_TEST_CASE(knows_nothing_at_first) {
  cost_table table;
  BOOST_TEST(!table.seconds(1));
  BOOST_TEST(!table.knows(1));
  for (const double impossible : {0.0, -1.0, std::nan(""), HUGE_VAL}) table.observe(1, impossible);
  table.observe(0, 1);
  BOOST_TEST(!table.seconds(1));
}

BOOST_AUTO_TEST_CASE(takes_the_lower_quartile_of_the_latest) {
  cost_table table;
  for (const double seconds : {1.0, 50.0, 1.2, 60.0}) table.observe(4, seconds);
  BOOST_TEST(*table.seconds(4) == 1.0);
  table.observe(4, 1.1);
  BOOST_TEST(*table.seconds(4) == 1.1);
  for (int i = 0; i < 4; ++i) table.observe(4, 3);
  BOOST_TEST(*table.seconds(4) == 3.0);
}

BOOST_AUTO_TEST_CASE(interpolates_and_follows_the_slope_outside) {
  cost_table table;
  table.observe(4, 2);
  BOOST_TEST(*table.seconds(1) == 2.0);
  BOOST_TEST(*table.seconds(100) == 2.0);
  table.observe(8, 3);
  BOOST_TEST(*table.seconds(6) == 2.5, tolerance(1e-9));
  BOOST_TEST(*table.seconds(12) == 4.0, tolerance(1e-9));
  BOOST_TEST(*table.seconds(2) == 1.5, tolerance(1e-9));
  cost_table steep;
  steep.observe(4, 2);
  steep.observe(8, 8);
  BOOST_TEST(*steep.seconds(2) == 1.0, tolerance(1e-9));  // not less than in proportion
}

BOOST_AUTO_TEST_CASE(lets_more_never_take_less) {
  cost_table table;
  table.observe(1, 5);
  table.observe(2, 3);
  table.observe(6, 4);
  BOOST_TEST(*table.seconds(1) == 3.0);
  for (std::uint32_t size = 1; size < 300; ++size)
    BOOST_TEST(*table.seconds(size) <= *table.seconds(size + 1));
}

BOOST_AUTO_TEST_CASE(puts_sizes_of_an_eighth_apart_together) {
  cost_table table;
  table.observe(15, 1);
  BOOST_TEST(!table.knows(14));
  table.observe(96, 4);
  BOOST_TEST(table.knows(103));
  BOOST_TEST(!table.knows(104));
  BOOST_TEST(!table.knows(95));
}

BOOST_AUTO_TEST_CASE(forgets_what_is_long_ago) {
  cost_table table;
  table.observe(8, 100);
  for (std::uint64_t i = 0; i < cost_table::horizon; ++i) table.observe(1, 1);
  BOOST_TEST(table.knows(8));
  table.observe(1, 1);
  BOOST_TEST(!table.knows(8));
  BOOST_TEST(*table.seconds(8) == 1.0);
}

BOOST_AUTO_TEST_SUITE_END()
