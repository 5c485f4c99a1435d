// Goal: the loopback port keeps the promises of port.hpp. Method: deliver event by event; then with
// the hub's own thread.
#include "runtime/transport/loopback_hub.hpp"

#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <mutex>

#include "kernels/base/check.hpp"
#include "tests/unit/runtime/transport/recording_handler.hpp"

using namespace cedar;
using namespace cedar::transport;
using namespace cedar::transport::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t everything = 1000;
const node_id a{1}, b{2};

struct two_nodes {
  loopback_hub hub;
  recording_handler at_a, at_b;
  std::unique_ptr<port> port_a = hub.open(a, "a", at_a);
  std::unique_ptr<port> port_b = hub.open(b, "b", at_b);

  void connect() {
    port_a->connect(b, port_b->address(), 1s);
    hub.deliver(everything);
  }
};

using names = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(loopback_hubs)

BOOST_AUTO_TEST_CASE(frames_arrive_in_order_as_copies) {
  two_nodes nodes;
  nodes.connect();
  BOOST_TEST((nodes.at_a.log == names{"up 2"}));
  BOOST_TEST((nodes.at_b.log == names{"up 1"}));
  nodes.port_a->send(b, frame_of(100, 1));
  nodes.port_a->send(b, frame_of(0, 2));
  BOOST_TEST(nodes.port_a->statistics().peers.at(0).queued_bytes == 100U + 5 + 16 + 5 + 16);
  BOOST_TEST(nodes.hub.deliver(1) == 1U);
  BOOST_TEST(nodes.hub.deliver(everything) == 1U);
  BOOST_REQUIRE_EQUAL(nodes.at_b.frames.size(), 2U);
  const flow::frame first = frame_of(100, 1);
  BOOST_TEST((nodes.at_b.frames[0].header == first.header));
  BOOST_REQUIRE_EQUAL(nodes.at_b.frames[0].payload.bytes(), 105U);
  BOOST_TEST((nodes.at_b.frames[0].payload.data()[99] == first.tensor->data()[99]));
  BOOST_TEST((nodes.at_b.frames[0].payload.data()[100] == first.lists[0]));
  const auto sent = nodes.port_a->statistics().peers.at(0);
  BOOST_TEST(sent.name == "b");
  BOOST_TEST(sent.transport == "loopback");
  BOOST_TEST(sent.frames_sent == 2U);
  BOOST_TEST(sent.bytes_sent == 142U);
  BOOST_TEST(sent.queued_bytes == 0U);
  BOOST_TEST(nodes.port_b->statistics().peers.at(0).frames_received == 2U);
}

BOOST_AUTO_TEST_CASE(a_frame_to_nobody_is_counted) {
  two_nodes nodes;
  nodes.port_a->send(b, frame_of(1));
  nodes.port_a->send(node_id{9}, frame_of(1));
  BOOST_TEST(nodes.hub.deliver(everything) == 0U);
  BOOST_TEST(nodes.port_a->statistics().frames_to_nobody == 2U);
}

BOOST_AUTO_TEST_CASE(closing_is_told_as_leaving_in_good_order) {
  two_nodes nodes;
  nodes.connect();
  nodes.port_a->send(b, frame_of(1));
  BOOST_TEST(nodes.port_a->close(1s).has_value());
  nodes.hub.deliver(everything);
  BOOST_TEST((nodes.at_b.log == names{"up 1", "frame 1", "lost 1"}));
  BOOST_TEST((nodes.at_b.reasons.at(0).code == errc::cancelled));
  BOOST_TEST((nodes.at_a.log == names{"up 2"}));
  BOOST_TEST(nodes.port_a->statistics().peers.size() == 1U);
}

BOOST_AUTO_TEST_CASE(disconnecting_is_told_at_both_ends) {
  two_nodes nodes;
  nodes.connect();
  nodes.port_a->disconnect(b, {errc::malformed, "gap"});
  nodes.port_a->send(b, frame_of(1));
  nodes.hub.deliver(everything);
  BOOST_TEST((nodes.at_a.log == names{"up 2", "lost 2"}));
  BOOST_TEST((nodes.at_b.log == names{"up 1", "lost 1"}));
  BOOST_TEST(nodes.at_a.reasons.at(0).message == "gap");
  BOOST_TEST((nodes.at_b.reasons.at(0).code == errc::peer_lost));
  nodes.connect();
  BOOST_TEST(nodes.at_a.log.back() == "up 2");
}

BOOST_AUTO_TEST_CASE(a_node_that_is_not_there_is_reported) {
  two_nodes nodes;
  nodes.port_a->connect(node_id{7}, "loopback:7", 1s);
  nodes.hub.deliver(everything);
  BOOST_TEST((nodes.at_a.log == names{"lost 7"}));
  BOOST_TEST((nodes.at_a.reasons.at(0).code == errc::timeout));
}

BOOST_AUTO_TEST_CASE(a_node_has_one_port) {
  two_nodes nodes;
  recording_handler other;
  BOOST_CHECK_THROW(nodes.hub.open(a, "again", other), defect);
}

BOOST_AUTO_TEST_CASE(a_defect_in_a_handler_reaches_the_caller_and_blocks_nothing) {
  class broken final : public recording_handler {
    void on_frame(node_id, flow::received_frame) override { throw defect("broken"); }
  };
  loopback_hub hub;
  recording_handler at_a;
  broken at_b;
  const auto port_a = hub.open(a, "a", at_a);
  const auto port_b = hub.open(b, "b", at_b);
  port_a->connect(b, port_b->address(), 1s);
  port_a->send(b, frame_of(1));
  BOOST_CHECK_THROW(hub.deliver(everything), defect);
  BOOST_TEST(port_b->close(1s).has_value());
}

BOOST_AUTO_TEST_CASE(a_thread_delivers_and_close_waits_for_it) {
  class counting : public recording_handler {
   public:
    void on_frame(node_id from, flow::received_frame frame) override {
      const std::lock_guard lock(mutex);
      recording_handler::on_frame(from, std::move(frame));
      changed.notify_all();
    }
    std::mutex mutex;
    std::condition_variable changed;
  };
  loopback_hub hub;
  recording_handler at_a;
  auto at_b = std::make_unique<counting>();
  const auto port_a = hub.open(a, "a", at_a);
  auto port_b = hub.open(b, "b", *at_b);
  hub.run();
  port_a->connect(b, port_b->address(), 1s);
  for (int i = 0; i < 100; ++i) port_a->send(b, frame_of(10));
  {
    std::unique_lock lock(at_b->mutex);
    const bool arrived =
        at_b->changed.wait_for(lock, 10s, [&] { return at_b->frames.size() == 100; });
    BOOST_TEST(arrived);
  }
  for (int i = 0; i < 100; ++i) port_a->send(b, frame_of(10));
  BOOST_TEST(port_b->close(1s).has_value());
  at_b.reset();  // nothing calls it any more, or the sanitizers say so
}

BOOST_AUTO_TEST_SUITE_END()
