// Goal: two connected nodes with nothing to do use next to no processor time. Method: processor
// time of both processes over three seconds.
#include <sys/resource.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "tests/integration/runtime/transport/peer_process.hpp"

using namespace cedar;
using namespace cedar::transport;
using namespace cedar::transport::test;

namespace {

std::chrono::nanoseconds own_cpu_time() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto as_time = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return as_time(used.ru_utime) + as_time(used.ru_stime);
}

const std::vector<std::string> carries{"network", "shared"};

}  // namespace

BOOST_AUTO_TEST_SUITE(idling)

BOOST_DATA_TEST_CASE(an_idle_pair_sleeps, carries, carry) {
  peer_process peer({.carry = carry});
  this_node node(carry);
  node.open();
  node.connect(peer);
  peer.echo();
  node.door->send(there, whole_frame(1 << 20, 0));
  BOOST_REQUIRE(node.events.wait_frames(1));
  const auto before = own_cpu_time(), before_there = peer.cpu_time();
  constexpr auto watched = 3s;
  std::this_thread::sleep_for(watched);
  const auto percent = [&](std::chrono::nanoseconds used) {
    return 100.0 * std::chrono::duration<double>(used) / std::chrono::duration<double>(watched);
  };
  const double used_here = percent(own_cpu_time() - before);
  const double used_there = percent(peer.cpu_time() - before_there);
  BOOST_TEST_MESSAGE(carry << ": idle nodes use " << used_here << " % and " << used_there
                           << " % of a core");
  BOOST_TEST(node.events.losses() == 0U);  // heartbeats went both ways
  BOOST_TEST(used_here < 5.0);
  BOOST_TEST(used_there < 5.0);
}

BOOST_AUTO_TEST_SUITE_END()
