// Goal: frames arrive when the link's numbers say. Method: passages worked out by hand; where there
// is luck, counted over many and compared with the probabilities.
#include "runtime/transport/shaped_link.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

using namespace cedar;
using namespace cedar::transport;
using namespace std::chrono_literals;

namespace {

using time_point = shaped_link::time_point;
const time_point start = time_point{} + 1h;
const node_id a{1}, b{2};

shaped_link link_of(const link_shape& shape, std::uint64_t seed = 7) {
  return {shape, seed, a, b};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(shaped_links)

BOOST_AUTO_TEST_CASE(frames_queue_for_bandwidth_and_overlap_in_latency) {
  shaped_link link = link_of({.latency = 20ms, .bytes_per_second = 1e6});
  BOOST_TEST((link.take(start, 1000).due == start + 21ms));
  BOOST_TEST((link.take(start, 3000).due == start + 24ms));
  // At 2 ms the link is busy until 4 ms; at 10 ms it is free.
  BOOST_TEST((link.take(start + 2ms, 1000).due == start + 25ms));
  BOOST_TEST((link.take(start + 10ms, 1000).due == start + 31ms));
}

BOOST_AUTO_TEST_CASE(a_new_connection_waits_for_nothing_of_the_old) {
  shaped_link link = link_of({.latency = 1ms, .bytes_per_second = 1000});
  BOOST_TEST((link.take(start, 10'000).due == start + 10s + 1ms));
  link.clear();
  BOOST_TEST((link.take(start, 1000).due == start + 1s + 1ms));
}

BOOST_AUTO_TEST_CASE(jitter_is_uniform_and_keeps_the_order) {
  shaped_link link = link_of({.latency = 5ms, .jitter = 10ms});
  double sum = 0;
  std::chrono::nanoseconds least = 1h, most = 0ns;
  for (int i = 0; i < 1000; ++i) {
    // Far enough apart not to wait for each other.
    const time_point now = start + i * 1s;
    const auto jitter = link.take(now, 1).due - now - 5ms;
    BOOST_TEST((jitter >= 0ns && jitter <= 10ms));
    least = std::min<std::chrono::nanoseconds>(least, jitter);
    most = std::max<std::chrono::nanoseconds>(most, jitter);
    sum += std::chrono::duration<double, std::milli>(jitter).count() / 1000;
  }
  BOOST_TEST(std::abs(sum - 5) < 0.5);  // five deviations of a mean of 1000
  BOOST_TEST((least < 1ms && most > 9ms));
  time_point last{};
  int waited = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto due = link.take(start + 1h + i * 1ms, 1).due;
    BOOST_TEST((due >= last));
    waited += due == last;
    last = due;
  }
  BOOST_TEST(waited > 100);
}

BOOST_AUTO_TEST_CASE(a_lost_frame_waits_for_timeouts_that_double_and_holds_up_the_next) {
  const link_shape shape{.latency = 20ms, .loss = 0.3};
  BOOST_TEST((retransmission_timeout(shape) == 240ms));
  BOOST_TEST((retransmission_timeout({.latency = 1s, .jitter = 300ms}) == 2600ms));
  shaped_link link = link_of(shape);
  bool held_up = false;
  for (int i = 0; i < 200; ++i) {
    const time_point now = start + i * 1h;
    const auto first = link.take(now, 1);
    BOOST_TEST((first.due == now + 20ms + 240ms * ((1 << first.losses) - 1)));
    const auto second = link.take(now, 1);
    BOOST_TEST((second.due >= first.due));
    held_up = held_up || (first.losses > 0 && second.losses == 0 && second.due == first.due);
  }
  BOOST_TEST(held_up);
}

BOOST_AUTO_TEST_CASE(losses_are_as_frequent_as_said_and_of_packets) {
  constexpr int frames = 20'000;
  for (const std::uint64_t packets : {1, 10}) {
    shaped_link link = link_of({.loss = 0.05});
    int lost = 0, twice = 0;
    for (int i = 0; i < frames; ++i) {
      const auto losses = link.take(start + i * 1h, packets * packet_bytes).losses;
      lost += losses >= 1;
      twice += losses >= 2;
    }
    const double at_least_1 = 1 - std::pow(0.95, packets);
    const double at_least_2 = 1 - std::pow(1 - 0.05 * 0.05, packets);
    // Five standard deviations.
    BOOST_TEST(std::abs(lost - frames * at_least_1) < 5 * std::sqrt(frames * at_least_1));
    BOOST_TEST(std::abs(twice - frames * at_least_2) < 5 * std::sqrt(frames * at_least_2));
  }
}

BOOST_AUTO_TEST_CASE(a_link_that_loses_everything_is_given_up) {
  shaped_link link = link_of({.loss = 1});
  const auto lost = link.take(start, 1);
  BOOST_TEST(lost.given_up);
  BOOST_TEST(lost.losses == losses_in_a_row_max);
  BOOST_TEST((lost.due == start + 63 * 200ms));
  BOOST_TEST(!link_of({}).take(start, 1).given_up);
}

BOOST_AUTO_TEST_CASE(a_seed_gives_its_luck_again_and_each_direction_has_its_own) {
  const link_shape shape{.jitter = 10ms, .loss = 0.2};
  const auto lucks = [&](std::uint64_t seed, node_id self, node_id peer) {
    shaped_link link(shape, seed, self, peer);
    std::vector<std::int64_t> out;
    for (int i = 0; i < 50; ++i) {
      const time_point now = start + i * 1h;
      out.push_back((link.take(now, 1).due - now).count());
    }
    return out;
  };
  BOOST_TEST((lucks(1, a, b) == lucks(1, a, b)));
  BOOST_TEST((lucks(1, a, b) != lucks(2, a, b)));
  BOOST_TEST((lucks(1, a, b) != lucks(1, b, a)));
  BOOST_TEST((lucks(1, a, b) != lucks(1ULL << 32U, a, b)));
}

BOOST_AUTO_TEST_SUITE_END()
