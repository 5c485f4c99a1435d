// Goal: a shaped port holds frames back as its links say and keeps the promises of port.hpp.
// Method: two nodes of a loopback hub under a clock that the test turns; then with a thread.
#include "runtime/transport/shaped_port.hpp"

#include <boost/test/unit_test.hpp>
#include <future>

#include "runtime/transport/loopback_hub.hpp"
#include "tests/unit/runtime/transport/recording_handler.hpp"

using namespace cedar;
using namespace cedar::transport;
using namespace cedar::transport::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t everything = 1000;
const node_id a{1}, b{2}, c{3};
using names = std::vector<std::string>;

/// Salts of the frames that arrived: frame_of() writes them into every byte of the header.
std::vector<int> salts(const recording_handler& at) {
  std::vector<int> out;
  for (const flow::received_frame& frame : at.frames)
    out.push_back(std::to_integer<int>(frame.header.at(0)));
  return out;
}

/// a sends through a shaped port, b and c do not.
struct shaped_nodes {
  explicit shaped_nodes(const link_shape& to_b, std::size_t queue_bytes_max = 1000) {
    shape_options options;
    options.self = a;
    options.links[b] = to_b;
    options.queue_bytes_max = queue_bytes_max;
    auto opened = shaped_port::open(
        options, at_a,
        [this](port_handler& handler) -> result<std::unique_ptr<port>> {
          return hub.open(a, "a", handler);
        },
        [this] { return now; });
    port_a = std::move(*opened);
    connect();
  }

  void connect() {
    for (const node_id peer : {b, c}) port_a->connect(peer, "", 1s);
    hub.deliver(everything);
  }

  /// Lets time pass; returns the salts of what has arrived at b until then.
  std::vector<int> after(std::chrono::nanoseconds time) {
    now += time;
    next = port_a->release();
    hub.deliver(everything);
    return salts(at_b);
  }

  shaped_port::time_point now = shaped_port::time_point{} + 1h;
  std::optional<shaped_port::time_point> next;
  loopback_hub hub;
  recording_handler at_a, at_b, at_c;
  std::unique_ptr<port> port_b = hub.open(b, "b", at_b);
  std::unique_ptr<port> port_c = hub.open(c, "c", at_c);
  std::unique_ptr<shaped_port> port_a;
};

using list = std::vector<int>;

}  // namespace

BOOST_AUTO_TEST_SUITE(shaped_ports)

BOOST_AUTO_TEST_CASE(frames_arrive_after_the_latency_in_order_and_whole) {
  shaped_nodes nodes({.latency = 20ms});
  nodes.port_a->send(b, frame_of(100, 1));
  nodes.after(5ms);
  nodes.port_a->send(b, frame_of(0, 2));
  BOOST_TEST((nodes.after(14ms) == list{}));
  BOOST_TEST((nodes.next == nodes.now + 1ms));
  BOOST_TEST((nodes.after(1ms) == list{1}));
  BOOST_TEST((nodes.next == nodes.now + 5ms));
  BOOST_TEST((nodes.after(5ms) == list{1, 2}));
  BOOST_TEST(!nodes.next.has_value());
  BOOST_TEST(nodes.at_b.frames[0].payload.bytes() == 105U);
}

BOOST_AUTO_TEST_CASE(frames_wait_for_bandwidth) {
  // 50 bytes each: 16 of header, 34 of payload.
  shaped_nodes nodes({.latency = 1ms, .bytes_per_second = 50'000});
  for (unsigned salt = 1; salt <= 3; ++salt) nodes.port_a->send(b, frame_of(29, salt));
  BOOST_TEST((nodes.after(1999us) == list{}));
  BOOST_TEST((nodes.after(1us) == list{1}));
  BOOST_TEST((nodes.after(1ms) == list{1, 2}));
  BOOST_TEST((nodes.after(1ms) == list{1, 2, 3}));
}

BOOST_AUTO_TEST_CASE(other_peers_and_what_arrives_pass_as_they_are) {
  shaped_nodes nodes({.latency = 20ms});
  nodes.port_a->send(c, frame_of(1, 1));
  nodes.port_b->send(a, frame_of(1, 2));
  nodes.hub.deliver(everything);
  BOOST_TEST((salts(nodes.at_c) == list{1}));
  BOOST_TEST((salts(nodes.at_a) == list{2}));
  BOOST_TEST((nodes.at_a.log == names{"up 2", "up 3", "frame 2"}));
}

BOOST_AUTO_TEST_CASE(lost_frames_come_late_and_those_behind_wait) {
  shaped_nodes nodes({.latency = 20ms, .loss = 0.5}, 100'000);
  // One by one, so that the time each takes tells what became of it.
  list expected;
  std::uint64_t late = 0;
  for (int salt = 1; salt <= 20; ++salt) {
    nodes.port_a->send(b, frame_of(0, static_cast<unsigned>(salt)));
    expected.push_back(salt);
    late += nodes.after(20ms).size() < expected.size();
    BOOST_TEST((nodes.after(15s) == expected));
  }
  BOOST_TEST((late > 2 && late < 18));
  const auto statistics = nodes.port_a->statistics();
  const std::string& carried = statistics.peers.at(0).transport;
  BOOST_TEST(carried.find("loopback, emulated: 20 ms, loss 50 % (") == 0U, carried);
  BOOST_TEST(carried.find(" lost)") != std::string::npos, carried);
  BOOST_TEST(statistics.peers.at(1).transport == "loopback");
  // All at once: still in order, and once.
  for (int salt = 21; salt <= 60; ++salt) {
    nodes.port_a->send(b, frame_of(0, static_cast<unsigned>(salt)));
    expected.push_back(salt);
  }
  for (int step = 0; step < 100; ++step) {
    const list seen = nodes.after(150ms);
    BOOST_TEST(std::equal(seen.begin(), seen.end(), expected.begin()));
  }
  BOOST_TEST((nodes.after(1min) == expected));
}

BOOST_AUTO_TEST_CASE(a_link_that_loses_everything_loses_its_peer_at_both_ends) {
  shaped_nodes nodes({.loss = 1});
  nodes.port_a->send(b, frame_of(0, 1));
  nodes.port_a->send(b, frame_of(0, 2));
  nodes.after(12s);
  BOOST_TEST(nodes.at_a.reasons.empty());
  BOOST_TEST((nodes.after(600ms) == list{}));
  BOOST_REQUIRE(nodes.at_a.reasons.size() == 1U);
  BOOST_TEST((nodes.at_a.reasons[0].code == errc::peer_lost));
  BOOST_TEST(nodes.at_a.reasons[0].message ==
             "the emulated link to node 2 ('b') lost a packet 6 times in a row");
  BOOST_TEST((nodes.at_b.log == names{"up 1", "lost 1"}));
  // As any port: what is sent to a lost peer is dropped and counted.
  nodes.port_a->send(b, frame_of(0, 3));
  BOOST_TEST(nodes.port_a->statistics().frames_to_nobody == 1U);
}

BOOST_AUTO_TEST_CASE(frames_of_a_lost_connection_do_not_reach_the_next) {
  shaped_nodes nodes({.latency = 20ms, .bytes_per_second = 1000});
  nodes.port_a->send(b, frame_of(500, 1));
  nodes.port_a->disconnect(b, {errc::peer_lost, "tried out"});
  nodes.hub.deliver(everything);
  BOOST_TEST((nodes.at_a.log == names{"up 2", "up 3", "lost 2"}));
  nodes.connect();
  nodes.port_a->send(b, frame_of(0, 2));
  // 21 bytes at a free link; those of the old connection would take half a second.
  BOOST_TEST((nodes.after(41ms) == list{2}));
  BOOST_TEST((nodes.after(1h) == list{2}));
}

BOOST_AUTO_TEST_CASE(held_frames_are_queued_ones_and_too_many_lose_the_peer) {
  shaped_nodes nodes({.latency = 20ms}, 200);
  nodes.port_a->send(b, frame_of(79, 1));
  BOOST_TEST(nodes.port_a->statistics().peers.at(0).queued_bytes == 100U);
  nodes.port_a->send(b, frame_of(79, 2));
  BOOST_TEST(nodes.port_a->statistics().peers.at(0).queued_bytes == 200U);
  nodes.after(20ms);
  BOOST_TEST(nodes.port_a->statistics().peers.at(0).queued_bytes == 0U);
  BOOST_TEST(nodes.port_a->statistics().peers.at(0).queued_bytes_max == 200U);
  for (unsigned salt = 3; salt <= 6; ++salt) nodes.port_a->send(b, frame_of(79, salt));
  BOOST_TEST((nodes.after(20ms) == list{1, 2}));
  BOOST_REQUIRE(nodes.at_a.reasons.size() == 1U);
  BOOST_TEST(nodes.at_a.reasons[0].message ==
             "the emulated link to node 2 ('b') does not drain: 200 bytes wait, the limit is 200");
  BOOST_TEST(nodes.port_a->statistics().frames_to_nobody == 1U);
}

BOOST_AUTO_TEST_CASE(close_sends_what_is_held) {
  shaped_nodes nodes({.latency = 20ms, .bytes_per_second = 10});
  for (unsigned salt = 1; salt <= 3; ++salt) nodes.port_a->send(b, frame_of(0, salt));
  BOOST_TEST(nodes.port_a->close(1s).has_value());
  nodes.hub.deliver(everything);
  BOOST_TEST((salts(nodes.at_b) == list{1, 2, 3}));
  BOOST_TEST(nodes.at_b.log.back() == "lost 1");
}

BOOST_AUTO_TEST_CASE(a_thread_lets_frames_go_when_their_time_has_come) {
  struct waiting_handler : recording_handler {
    void on_frame(node_id from, flow::received_frame frame) override {
      recording_handler::on_frame(from, std::move(frame));
      if (frames.size() == 2) both.set_value(std::chrono::steady_clock::now());
    }
    std::promise<std::chrono::steady_clock::time_point> both;
  };
  loopback_hub hub;
  recording_handler at_a;
  waiting_handler at_b;
  const auto port_b = hub.open(b, "b", at_b);
  shape_options options;
  options.self = a;
  options.links[b] = {.latency = 30ms};
  const auto port_a =
      shaped_port::open(options, at_a, [&](port_handler& handler) -> result<std::unique_ptr<port>> {
        return hub.open(a, "a", handler);
      });
  (*port_a)->connect(b, "", 1s);
  hub.deliver(everything);
  hub.run();
  (*port_a)->run();
  const auto sent = std::chrono::steady_clock::now();
  (*port_a)->send(b, frame_of(0, 1));
  (*port_a)->send(b, frame_of(0, 2));
  BOOST_TEST((at_b.both.get_future().get() - sent >= 30ms));
  BOOST_TEST((*port_a)->close(1s).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
