// Goal: a silent peer is found in time, and a node that slept blames nobody. Method: time by hand.
#include "runtime/transport/liveness.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/base/check.hpp"

using namespace cedar;
using namespace cedar::transport;
using namespace std::chrono_literals;

namespace {

const liveness::time_point start{};

liveness watched() {
  return liveness(200ms, 1000ms, start);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(livenesses)

BOOST_AUTO_TEST_CASE(heartbeats_come_every_interval) {
  liveness watch = watched();
  BOOST_TEST(!watch.tick(start + 199ms).heartbeat_due);
  BOOST_TEST(watch.tick(start + 200ms).heartbeat_due);
  BOOST_TEST(!watch.tick(start + 399ms).heartbeat_due);
  BOOST_TEST(watch.tick(start + 400ms).heartbeat_due);
  BOOST_TEST((watch.next_due() == start + 600ms));
}

BOOST_AUTO_TEST_CASE(a_silent_peer_is_found_at_the_limit_and_a_heard_one_is_not) {
  liveness watch = watched();
  watch.add(node_id{1}, start);
  watch.add(node_id{2}, start);
  for (auto now = start; now < start + 1000ms; now += 100ms) {
    watch.heard(node_id{2}, now);
    BOOST_TEST(watch.tick(now).silent.empty());
  }
  const auto found = watch.tick(start + 1000ms).silent;
  BOOST_REQUIRE_EQUAL(found.size(), 1U);
  BOOST_TEST((found[0] == node_id{1}));
  watch.remove(node_id{1});
  BOOST_TEST(watch.tick(start + 1100ms).silent.empty());
}

BOOST_AUTO_TEST_CASE(a_node_that_slept_gives_its_peers_a_new_limit) {
  liveness watch = watched();
  watch.add(node_id{1}, start);
  BOOST_TEST(watch.tick(start + 10s).silent.empty());
  for (auto now = start + 10s; now < start + 11s; now += 100ms) {
    BOOST_TEST(watch.tick(now).silent.empty());
  }
  BOOST_TEST(watch.tick(start + 11s).silent.size() == 1U);
}

BOOST_AUTO_TEST_CASE(the_next_due_time_is_the_earliest) {
  liveness watch = watched();
  watch.add(node_id{1}, start - 950ms);
  BOOST_TEST((watch.next_due() == start + 50ms));
  watch.heard(node_id{3}, start);  // unknown: nothing happens
  BOOST_TEST(watch.tick(start + 50ms).silent.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_limit_without_room_for_lost_heartbeats_is_a_defect) {
  BOOST_CHECK_THROW(liveness(200ms, 400ms, start), defect);
}

BOOST_AUTO_TEST_SUITE_END()
