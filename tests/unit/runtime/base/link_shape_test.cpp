// Goal: a link's numbers become times and texts. Method: worked out by hand.
#include "runtime/base/link_shape.hpp"

#include <boost/test/unit_test.hpp>

using namespace cedar;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(link_shapes)

BOOST_AUTO_TEST_CASE(take_time_by_bytes_and_latency) {
  const link_shape gigabit{.latency = 20ms, .bytes_per_second = 125e6};
  BOOST_TEST((gigabit.occupancy(0) == 0ns));
  BOOST_TEST((gigabit.occupancy(125) == 1us));
  BOOST_TEST((gigabit.passage(1'250'000) == 30ms));
  const link_shape wide{.latency = 3ms};
  BOOST_TEST((wide.passage(1ULL << 40U) == 3ms));
  // To the nearest nanosecond.
  BOOST_TEST((link_shape{.bytes_per_second = 3e9}.occupancy(5) == 2ns));
}

BOOST_AUTO_TEST_CASE(tell_what_is_not_perfect) {
  BOOST_TEST(to_string(link_shape{}) == "0 ms");
  BOOST_TEST(to_string(link_shape{
                 .latency = 20ms, .jitter = 2ms, .bytes_per_second = 125e6, .loss = 0.001}) ==
             "20 ms, 1000 Mbit/s, jitter 2 ms, loss 0.1 %");
  BOOST_TEST(to_string(link_shape{.latency = 50us, .bytes_per_second = 5e10}) ==
             "0.05 ms, 400000 Mbit/s");
  BOOST_TEST(to_string(link_shape{.bytes_per_second = 1.25e12}) == "0 ms, 10000000 Mbit/s");
}

BOOST_AUTO_TEST_SUITE_END()
