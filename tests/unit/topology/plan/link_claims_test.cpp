// Goal: a link that is slower than the file claims is told with both numbers; one that is as
// claimed, or of which nothing is claimed, is not. Method: measurements made up on both sides of
// each limit.
#include "topology/plan/link_claims.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/topology/plan/support.hpp"

using namespace cedar;
using namespace cedar::topology;
using namespace cedar::topology::test;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

constexpr double mbit = 1e6 / 8;
constexpr std::uint64_t mib = 1 << 20;

plan linked(const std::string& links) {
  return planned(two_nodes + "links: [" + links + "]\n");
}

measured_link between(const plan& p, nanoseconds round_trip, double there = 1e9,
                      double back = 1e9) {
  const node_id front = p.find_node("front")->id, node_back = p.find_node("back")->id;
  return {front,
          node_back,
          {2 * round_trip, round_trip, {{1024, 1, 1}, {mib, there * mbit, back * mbit}}, "tcp/lo"}};
}

std::string judged(const plan& p, const measured_link& link) {
  return slower_than_claimed(p, link).value_or("");
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(link_claims)

BOOST_AUTO_TEST_CASE(claim_nothing_where_nothing_is_declared) {
  const plan p = planned(two_nodes);
  BOOST_TEST(judged(p, between(p, 10s, 0.001, 0.001)) == "");
}

BOOST_AUTO_TEST_CASE(allow_twice_the_round_trip_and_a_moment) {
  const plan p = linked("{between: [front, back], latency_ms: 20}");
  BOOST_TEST(judged(p, between(p, 81ms)) == "");
  const std::string text = judged(p, between(p, 82ms));
  BOOST_TEST(has(text, "the link front <-> back is slower than"));
  BOOST_TEST(has(text, "claims: round trip 82 ms, claimed 40 ms"), text);
  // None claimed is none.
  const plan near = linked("{between: [front, back], bandwidth_mbps: 1000}");
  BOOST_TEST(judged(near, between(near, 1ms)) == "");
  BOOST_TEST(has(judged(near, between(near, 2ms)), "round trip 2 ms, claimed 0.000128 ms"));
}

BOOST_AUTO_TEST_CASE(count_jitter_and_the_bytes_of_the_probe) {
  const plan p =
      linked("{between: [front, back], latency_ms: 1, jitter_ms: 4, bandwidth_mbps: 0.064}");
  // 8 bytes take 1 ms each way: 2 (1 + 4 + 1) ms.
  BOOST_TEST(judged(p, between(p, 25ms)) == "");
  BOOST_TEST(has(judged(p, between(p, 26ms)), "round trip 26 ms, claimed 12 ms"));
}

BOOST_AUTO_TEST_CASE(judge_the_bandwidth_of_each_direction_by_the_largest_size) {
  // 1 MiB takes 8.39 ms at 1000 Mbit/s, and 16.8 ms at half of it.
  const plan p = linked("{between: [front, back], bandwidth_mbps: 1000}");
  BOOST_TEST(judged(p, between(p, 100us, 500, 510)) == "");
  const std::string both = judged(p, between(p, 100us, 490, 245));
  BOOST_TEST(has(both,
                 "claims: front -> back 490 Mbit/s (by 1 MiB), claimed 1000 Mbit/s; "
                 "back -> front 245 Mbit/s (by 1 MiB), claimed 1000 Mbit/s"),
             both);
  const std::string one = judged(p, between(p, 100us, 900, 100));
  BOOST_TEST(has(one, "claims: back -> front 100 Mbit/s"), one);
}

BOOST_AUTO_TEST_CASE(leave_a_round_trip_for_the_rendezvous) {
  const plan p = linked("{between: [front, back], latency_ms: 20, bandwidth_mbps: 1000}");
  // 40 ms and 16.8 ms: 149 Mbit/s.
  BOOST_TEST(judged(p, between(p, 40ms, 150, 150)) == "");
  BOOST_TEST(has(judged(p, between(p, 40ms, 140, 150)), "front -> back 140 Mbit/s"));
}

BOOST_AUTO_TEST_CASE(hold_nobody_who_declares_losses_to_the_bandwidth) {
  const plan p = linked("{between: [front, back], bandwidth_mbps: 1000, loss: 0.01}");
  BOOST_TEST(judged(p, between(p, 100us, 1, 1)) == "");
  BOOST_TEST(judged(p, between(p, 300ms, 1, 1)) != "");
}

BOOST_AUTO_TEST_CASE(of_one_direction_hold_for_it_alone) {
  const plan p = linked("{from: back, to: front, latency_ms: 10, bandwidth_mbps: 1000}");
  BOOST_TEST(judged(p, between(p, 40ms, 1, 900)) == "");
  BOOST_TEST(has(judged(p, between(p, 1ms, 1, 100)), "claims: back -> front 100 Mbit/s"));
  BOOST_TEST(has(judged(p, between(p, 42ms, 1, 900)), "round trip 42 ms, claimed 20 ms"));
}

BOOST_AUTO_TEST_CASE(stand_in_a_line) {
  const plan p = planned(two_nodes);
  measured_link link = between(p, 62us, 11'000, 9'500);
  link.found.round_trip = 81'400ns;
  link.found.rates[0] = {1024, 96.04 * mbit, 102.4 * mbit};
  BOOST_TEST(to_string(p, link) ==
             "front <-> back: tcp/lo, round trip 0.0814 ms (least 0.062), Mbit/s there and back: "
             "1 KiB 96 and 102, 1 MiB 11000 and 9500");
}

BOOST_AUTO_TEST_SUITE_END()
