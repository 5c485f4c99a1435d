// Goal: a measurement finds a link's numbers, and takes its sizes and its time by them. Method:
// exchanges whose durations follow from a link_shape, without a clock.
#include "runtime/transport/link_probe.hpp"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "runtime/base/link_shape.hpp"

using namespace cedar;
using namespace cedar::transport;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

constexpr double mbit = 1e6 / 8;

/// What a measurement of a link of these two directions finds, and takes.
struct measured {
  measured(const link_shape& there, const link_shape& back) {
    auto done = probe_link([&](std::size_t out, std::size_t in) -> result<nanoseconds> {
      const nanoseconds took = there.passage(out) + back.passage(in);
      spent += took;
      bytes += out + in;
      return took;
    });
    BOOST_REQUIRE(done.has_value());
    found = *done;
  }
  explicit measured(const link_shape& both) : measured(both, both) {}

  std::vector<std::uint64_t> sizes() const {
    std::vector<std::uint64_t> out;
    for (const link_rate& rate : found.rates) out.push_back(rate.bytes);
    return out;
  }

  link_measurement found;
  nanoseconds spent{0};
  std::uint64_t bytes = 0;
};

using size_list = std::vector<std::uint64_t>;

}  // namespace

BOOST_AUTO_TEST_SUITE(link_probe)

BOOST_AUTO_TEST_CASE(finds_latency_and_each_direction_of_bandwidth) {
  const measured link({.latency = 3ms, .bytes_per_second = 1000 * mbit},
                      {.latency = 1ms, .bytes_per_second = 200 * mbit});
  BOOST_TEST((link.found.round_trip_least >= 4ms));
  BOOST_TEST((link.found.round_trip_least < 4010us));
  BOOST_TEST((link.sizes() == size_list{1024, 32768, 1 << 20}));
  const link_rate& largest = link.found.rates.back();
  BOOST_TEST(largest.there == 1000 * mbit, boost::test_tools::tolerance(0.01));
  BOOST_TEST(largest.back == 200 * mbit, boost::test_tools::tolerance(0.01));
}

BOOST_AUTO_TEST_CASE(takes_little_of_a_slow_link) {
  const measured megabit({.latency = 10ms, .bytes_per_second = mbit});
  BOOST_TEST((megabit.sizes() == size_list{1024, 8192}));
  BOOST_TEST((megabit.spent < 1s));
  BOOST_TEST(megabit.found.rates.back().there == mbit, boost::test_tools::tolerance(0.01));
  const measured slowest({.bytes_per_second = mbit / 25});
  BOOST_TEST((slowest.sizes() == size_list{1024}));
  BOOST_TEST(slowest.bytes < 8192U);
  const measured far({.latency = 20ms, .bytes_per_second = 1000 * mbit});
  BOOST_TEST((far.sizes() == size_list{1024, 32768, 1 << 20}));
  BOOST_TEST((far.spent < 1s));
}

BOOST_AUTO_TEST_CASE(asks_once_where_an_answer_takes_seconds) {
  const measured moon({.latency = 1300ms});
  // A round trip, and two directions of each of three sizes.
  BOOST_TEST((moon.spent == 7 * 2600ms));
}

BOOST_AUTO_TEST_CASE(takes_the_median_and_the_least_of_round_trips) {
  const std::vector<nanoseconds> times{9ms, 2ms, 3ms, 50ms, 4ms, 2ms, 3ms, 3ms, 8ms};
  std::size_t asked = 0;
  const auto done = probe_link([&](std::size_t, std::size_t) -> result<nanoseconds> {
    return asked < times.size() ? times[asked++] : 2ms;
  });
  BOOST_REQUIRE(done.has_value());
  BOOST_TEST(asked == times.size());
  BOOST_TEST((done->round_trip == 3ms));
  BOOST_TEST((done->round_trip_least == 2ms));
  // Large frames that are no slower than small ones: a sixteenth of the round trip.
  BOOST_TEST(done->rates.back().there == 8000.0 * (1 << 20), boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(ends_with_the_first_exchange_that_fails) {
  for (const int failing : {1, 10, 14}) {
    int asked = 0;
    const auto done = probe_link([&](std::size_t, std::size_t) -> result<nanoseconds> {
      if (++asked == failing) return fail(errc::timeout, "silence");
      return 1ms;
    });
    BOOST_REQUIRE(!done.has_value());
    BOOST_TEST((done.error().code == errc::timeout));
    BOOST_TEST(asked == failing);
  }
}

BOOST_AUTO_TEST_SUITE_END()
