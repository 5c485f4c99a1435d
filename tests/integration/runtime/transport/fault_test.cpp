// Goal: a node that dies, stops or does not drain is named within two seconds; a node that was
// itself stopped blames nobody. Method: signals to another process.
#include <signal.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/integration/runtime/transport/peer_process.hpp"

using namespace cedar;
using namespace cedar::transport;
using namespace cedar::transport::test;

namespace {

const std::vector<std::string> carries{"network", "shared"};
constexpr auto named_within = 2s;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Signals the peer; the loss must be reported in time. Returns how long it took.
std::chrono::milliseconds time_to_loss(this_node& node, peer_process& peer, int signal) {
  const auto start = std::chrono::steady_clock::now();
  peer.signal(signal);
  BOOST_REQUIRE(node.events.wait_lost(1, named_within));
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - start);
  BOOST_TEST((node.events.reason().code == errc::peer_lost));
  BOOST_TEST(contains(node.events.reason().message, "node 2 ('peer')"),
             node.events.reason().message);
  BOOST_TEST_MESSAGE("reported after " << took.count() << " ms: " << node.events.reason().message);
  return took;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(faults)

BOOST_DATA_TEST_CASE(a_killed_peer_is_named, carries, carry) {
  peer_process peer({.carry = carry});
  this_node node(carry);
  node.open();
  node.connect(peer);
  time_to_loss(node, peer, SIGKILL);
  BOOST_TEST(!node.door->statistics().peers.at(0).up);
  BOOST_TEST(node.door->close(2s).has_value());
}

BOOST_DATA_TEST_CASE(a_peer_killed_while_frames_are_on_their_way_is_named, carries, carry) {
  peer_process peer({.carry = carry});
  this_node node(carry);
  node.open();
  node.connect(peer);
  peer.echo();
  for (std::uint64_t i = 0; i < 40; ++i) node.door->send(there, whole_frame(3 << 20, i));
  BOOST_REQUIRE(node.events.wait_frames(1));
  time_to_loss(node, peer, SIGKILL);
  node.door->send(there, whole_frame(10, 0));
  BOOST_TEST(node.door->statistics().frames_to_nobody == 1U);
  for (const auto& frame : node.events.take_frames()) BOOST_TEST(is_whole(frame));
  BOOST_TEST(node.door->close(2s).has_value());
}

BOOST_DATA_TEST_CASE(a_stopped_peer_is_named, carries, carry) {
  peer_process peer({.carry = carry});
  this_node node(carry);
  node.open();
  node.connect(peer);
  time_to_loss(node, peer, SIGSTOP);
  BOOST_TEST(contains(node.events.reason().message, "no heartbeat"));
  BOOST_TEST(contains(node.events.reason().message, " ms (deadlines_ms.heartbeat_lost)"));
  peer.signal(SIGCONT);
  BOOST_TEST(!peer.expect("lost 1").empty());  // it learns that it was given up
}

BOOST_DATA_TEST_CASE(a_peer_stopped_while_frames_are_on_their_way_is_named, carries, carry) {
  peer_process peer({.carry = carry});
  this_node node(carry);
  node.open();
  node.connect(peer);
  peer.echo();
  for (std::uint64_t i = 0; i < 40; ++i) node.door->send(there, whole_frame(3 << 20, i));
  BOOST_REQUIRE(node.events.wait_frames(1));
  time_to_loss(node, peer, SIGSTOP);
  BOOST_TEST(node.door->close(2s).has_value());
}

BOOST_DATA_TEST_CASE(a_peer_that_does_not_drain_is_dropped, carries, carry) {
  peer_process peer({.carry = carry});
  this_node node(carry);
  node.options.queue_bytes_max = 16 << 20;
  node.options.silence_limit = 60s;
  node.open();
  node.connect(peer);
  peer.signal(SIGSTOP);
  const flow::frame frame = whole_frame(1 << 20, 0);
  for (int i = 0; i < 100; ++i) node.door->send(there, frame);
  BOOST_REQUIRE(node.events.wait_lost(1, named_within));
  BOOST_TEST(contains(node.events.reason().message, "node 2 ('peer') does not drain"),
             node.events.reason().message);
  const auto seen = node.door->statistics();
  BOOST_TEST(seen.peers.at(0).queued_bytes_max <= node.options.queue_bytes_max);
  BOOST_TEST(seen.frames_to_nobody > 0U);
}

BOOST_DATA_TEST_CASE(a_node_that_was_stopped_itself_blames_nobody, carries, carry) {
  peer_process peer({.carry = carry});  // gives others one second
  this_node node(carry);
  node.options.silence_limit = 60s;  // this side gives it all the time it wants
  node.open();
  node.connect(peer);
  peer.signal(SIGSTOP);
  BOOST_TEST(!node.events.wait_lost(1, 2500ms));
  peer.signal(SIGCONT);
  BOOST_TEST(peer.expect("lost", 1500ms) == "");
  peer.echo();
  node.door->send(there, whole_frame(100, 1));
  BOOST_TEST(node.events.wait_frames(1));
}

BOOST_DATA_TEST_CASE(a_peer_that_is_back_is_connected_again, carries, carry) {
  this_node node(carry);
  node.open();
  {
    peer_process peer({.carry = carry});
    node.connect(peer);
    time_to_loss(node, peer, SIGKILL);
  }
  peer_process again({.carry = carry});
  node.connect(again);
  again.echo();
  node.door->send(there, whole_frame(100000, 1));
  BOOST_TEST(node.events.wait_frames(1));
  BOOST_TEST(node.events.losses() == 1U);
}

BOOST_AUTO_TEST_CASE(a_frame_too_large_ends_its_connection) {
  peer_process peer({});
  this_node node;
  node.options.frame_bytes_max = 100000;
  node.open();
  node.connect(peer);
  peer.tell("send 1 100001 1");
  BOOST_REQUIRE(node.events.wait_lost());
  BOOST_TEST(contains(node.events.reason().message, "exceeds the limit of 100000"),
             node.events.reason().message);
  BOOST_TEST(node.door->statistics().frames_refused == 1U);
  BOOST_TEST(!peer.expect("lost 1").empty());
}

BOOST_AUTO_TEST_CASE(disconnecting_is_told_at_both_ends) {
  peer_process peer({});
  this_node node;
  node.open();
  node.connect(peer);
  node.door->disconnect(there, {errc::malformed, "sequence gap"});
  BOOST_REQUIRE(node.events.wait_lost());
  BOOST_TEST(node.events.reason().message == "sequence gap");
  BOOST_TEST(contains(peer.expect("lost 1"), "peer lost"));
}

BOOST_AUTO_TEST_CASE(disconnecting_ends_the_search_for_a_peer) {
  peer_process peer({});
  this_node node;
  node.open();
  node.door->connect(there, "127.0.0.1:9", 60s);  // nobody listens there
  node.door->disconnect(there, {errc::peer_lost, "moved"});
  BOOST_REQUIRE(node.events.wait_lost(1, named_within));
  BOOST_TEST(node.events.reason().message == "moved");
  node.connect(peer);  // at its new address
}

BOOST_AUTO_TEST_SUITE_END()
