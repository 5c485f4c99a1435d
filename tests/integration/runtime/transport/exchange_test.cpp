// Goal: frames cross between two real processes whole and in order, over TCP and over shared
// memory, and both ends leave in good order. Method: another process echoes; bytes say what they
// are.
#include <dirent.h>
#include <signal.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "runtime/flow/edge.hpp"
#include "runtime/wire/encode.hpp"
#include "tests/integration/runtime/transport/peer_process.hpp"

using namespace cedar;
using namespace cedar::transport;
using namespace cedar::transport::test;

namespace {

const std::vector<std::string> carries{"network", "shared"};

bool is_expected(const std::string& transport, const std::string& carry) {
  if (carry == "network") return transport == "tcp/lo";
  return transport.starts_with("posix/") || transport.starts_with("sysv/");
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  BOOST_REQUIRE(folder != nullptr);
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(exchange)

BOOST_DATA_TEST_CASE(frames_of_a_megabyte_come_back_whole_and_in_order, carries, carry) {
  peer_process peer({.carry = carry});
  this_node node(carry);
  node.open();
  node.connect(peer);
  peer.echo();
  constexpr std::size_t count = 60;
  std::size_t sent_bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    flow::frame frame = whole_frame((std::size_t{1} << 20) + i, i);
    sent_bytes += frame.bytes();
    node.door->send(there, std::move(frame));
  }
  BOOST_REQUIRE(node.events.wait_frames(count));
  const auto frames = node.events.take_frames();
  for (std::size_t i = 0; i < count; ++i) {
    BOOST_REQUIRE_EQUAL(salt_of(frames[i]), i);
    BOOST_REQUIRE_EQUAL(frames[i].payload.bytes(), (std::size_t{1} << 20) + i);
    BOOST_REQUIRE(is_whole(frames[i]));
  }
  BOOST_TEST(eventually([&] { return node.door->statistics().peers.at(0).queued_bytes == 0; }));
  const auto seen = node.door->statistics().peers.at(0);
  BOOST_TEST(is_expected(seen.transport, carry), "carried by " << seen.transport);
  BOOST_TEST_MESSAGE(carry << ": carried by " << seen.transport);
  BOOST_TEST(seen.name == "peer");
  BOOST_TEST(seen.frames_sent == count);
  BOOST_TEST(seen.bytes_sent == sent_bytes);
  BOOST_TEST(seen.frames_received == count);
  BOOST_TEST(seen.bytes_received == sent_bytes);
  BOOST_TEST(seen.queued_bytes == 0U);
}

BOOST_DATA_TEST_CASE(all_sizes_travel_in_pieces_and_whole, carries, carry) {
  peer_process peer({.carry = carry});
  this_node node(carry);
  node.open();
  node.connect(peer);
  peer.echo();
  const std::vector<std::size_t> sizes{
      0,      1,       9,       10,      100,     8000,    8200,     65535, 65536, 65537,
      300000, 1048575, 1048576, 1048577, 2097152, 5000000, 17000000, 3,     70000};
  for (std::size_t round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < sizes.size(); ++i) node.door->send(there, whole_frame(sizes[i], i));
    BOOST_REQUIRE(node.events.wait_frames(sizes.size()));
    const auto frames = node.events.take_frames();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      BOOST_REQUIRE_EQUAL(salt_of(frames[i]), i);
      BOOST_REQUIRE_EQUAL(frames[i].payload.bytes(), sizes[i]);
      BOOST_REQUIRE(is_whole(frames[i]));
      const auto address = reinterpret_cast<std::uintptr_t>(frames[i].payload.data());
      BOOST_REQUIRE_EQUAL(address % kernels::buffer_alignment, 0U);
    }
  }
}

BOOST_DATA_TEST_CASE(closing_sends_what_is_queued_and_says_goodbye, carries, carry) {
  peer_process peer({.carry = carry});
  this_node node(carry);
  node.open();
  node.connect(peer);
  peer.tell("send 1 3000000 20");
  peer.tell("close");
  BOOST_REQUIRE(node.events.wait_frames(20));
  BOOST_REQUIRE(node.events.wait_lost());
  BOOST_TEST((node.events.reason().code == errc::cancelled));
  BOOST_TEST(node.events.reason().message == "node 2 ('peer') closed its port");
  BOOST_TEST(peer.expect("closed") == "closed");
  for (const auto& frame : node.events.take_frames()) BOOST_TEST(is_whole(frame));
  const auto closed = node.door->close(2s);
  BOOST_TEST(closed.has_value());
}

BOOST_AUTO_TEST_CASE(a_closed_port_takes_nothing) {
  peer_process peer({});
  this_node node;
  node.open();
  node.connect(peer);
  BOOST_TEST(node.door->close(2s).has_value());
  BOOST_TEST(node.door->close(2s).has_value());  // again: the same answer
  node.door->send(there, whole_frame(1000, 0));
  node.door->connect(there, peer.address(), 1s);
  BOOST_TEST(node.door->statistics().frames_to_nobody == 1U);
  BOOST_TEST(!node.door->statistics().peers.at(0).up);
  BOOST_TEST(node.events.ups() == 1U);
}

BOOST_AUTO_TEST_CASE(closing_does_not_wait_longer_than_it_may) {
  peer_process peer({});
  this_node node;
  node.options.silence_limit = 60s;
  node.open();
  node.connect(peer);
  peer.signal(SIGSTOP);
  for (std::uint64_t i = 0; i < 40; ++i) node.door->send(there, whole_frame(1 << 20, i));
  const auto start = std::chrono::steady_clock::now();
  const auto closed = node.door->close(300ms);
  BOOST_TEST((std::chrono::steady_clock::now() - start < patience));
  BOOST_REQUIRE(!closed.has_value());
  BOOST_TEST((closed.error().code == errc::timeout));
  BOOST_TEST(closed.error().message.find("node 2 ('peer')") != std::string::npos);
}

BOOST_DATA_TEST_CASE(two_ports_that_close_at_once_both_end, carries, carry) {
  peer_process peer({.carry = carry});
  this_node node(carry);
  node.open();
  node.connect(peer);
  peer.tell("close");
  BOOST_TEST(node.door->close(2s).has_value());
  BOOST_TEST(peer.expect("closed") == "closed");
}

BOOST_DATA_TEST_CASE(opening_and_closing_leaves_nothing_behind, carries, carry) {
  const auto once = [&] {
    peer_process peer({.carry = carry});
    this_node node(carry);
    node.open();
    node.connect(peer);
    BOOST_TEST(node.door->close(2s).has_value());
    BOOST_TEST(peer.expect("lost 1").find("closed its port") != std::string::npos);
  };
  once();  // whatever UCX opens once and for all
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 3; ++i) once();
  BOOST_TEST(open_descriptors() == before);
}

BOOST_AUTO_TEST_CASE(a_stalled_consumer_bounds_the_producer) {
  // The consumer receives but never grants credit; the producer's edge holds back all but the
  // window.
  peer_process peer({});
  this_node node;
  node.open();
  node.connect(peer);
  constexpr std::uint64_t window = 4 << 20;
  constexpr std::size_t queue_max = 8;
  flow::outbound_edge edge({edge_id{1}, "here -> there", 7, 100, window}, queue_max);
  std::size_t frames = 0;
  for (int i = 0; i < 1000; ++i) {
    if (edge.queued() < queue_max) {
      flow::tap message;
      message.name = "x";
      message.shape = {1 << 18};
      message.payload = flow::freeze(kernels::buffer(1 << 20));
      edge.push(std::move(message), {});
    }
    while (auto next = edge.pop({})) {
      node.door->send(there, wire::encode(next->head, next->body));
      ++frames;
    }
  }
  BOOST_TEST(frames == 3U);  // the fourth, with its name and shape, exceeds four megabytes
  BOOST_TEST(edge.queued() == queue_max);
  BOOST_TEST(node.door->statistics().peers.at(0).queued_bytes_max <= window + frames * 1024);
}

BOOST_AUTO_TEST_SUITE_END()
