// Goal: a probed port measures and is measured, and nobody else notices. Method: two nodes of a
// loopback hub with a thread; one of them behind an emulated link, whose numbers are known.
#include "runtime/transport/probed_port.hpp"

#include <boost/test/unit_test.hpp>
#include <future>

#include "runtime/transport/loopback_hub.hpp"
#include "runtime/transport/shaped_port.hpp"
#include "tests/unit/runtime/transport/recording_handler.hpp"

using namespace cedar;
using namespace cedar::transport;
using namespace cedar::transport::test;
using namespace std::chrono_literals;

namespace {

const node_id one{1}, two{2};

std::chrono::steady_clock::time_point in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

/// A recording handler that tells when a peer is up.
struct waited_handler final : recording_handler {
  void on_peer_up(node_id peer) override {
    recording_handler::on_peer_up(peer);
    up.set_value();
  }
  std::promise<void> up;
};

/// Node one, behind a link of this shape, and node two; connected, the hub runs.
struct probed_nodes {
  explicit probed_nodes(const link_shape& to_two = {}, bool answers = true) {
    first = std::move(*probed_port::open(at_one, [&](port_handler& handler) {
      shape_options options;
      options.self = one;
      options.links[two] = to_two;
      auto shaped = shaped_port::open(options, handler,
                                      [this](port_handler& inner) -> result<std::unique_ptr<port>> {
                                        return hub.open(one, "one", inner);
                                      });
      (*shaped)->run();
      return result<std::unique_ptr<port>>(std::move(*shaped));
    }));
    const auto open_two = [this](port_handler& handler) -> result<std::unique_ptr<port>> {
      return hub.open(two, "two", handler);
    };
    if (answers)
      second = std::move(*probed_port::open(at_two, open_two));
    else
      second = std::move(*open_two(at_two));
    hub.run();
    first->connect(two, "", 1s);
    at_one.up.get_future().wait();
    at_two.up.get_future().wait();
  }
  ~probed_nodes() {
    for (port* each : {static_cast<port*>(first.get()), second.get()})
      static_cast<void>(each->close(1s));
  }
  probed_nodes(const probed_nodes&) = delete;
  probed_nodes& operator=(const probed_nodes&) = delete;

  loopback_hub hub;
  waited_handler at_one, at_two;
  std::unique_ptr<probed_port> first;
  std::unique_ptr<port> second;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(probed_ports)

BOOST_AUTO_TEST_CASE(measure_the_link_that_is_there) {
  probed_nodes nodes({.latency = 20ms, .bytes_per_second = 1e6});
  const auto found = nodes.first->measure(two, in(60s));
  BOOST_REQUIRE_MESSAGE(found.has_value(), found.error().message);
  BOOST_TEST((found->round_trip_least >= 20ms));
  BOOST_TEST((found->round_trip >= found->round_trip_least));
  // One megabyte a second there at most; the way back is memory.
  BOOST_TEST(found->rates.back().there < 1.1e6);
  BOOST_TEST(found->rates.back().bytes >= 1024U);
  BOOST_TEST(found->transport == "loopback, emulated: 20 ms, 8 Mbit/s");
}

BOOST_AUTO_TEST_CASE(leave_no_trace_in_handlers_and_statistics) {
  probed_nodes nodes;
  BOOST_REQUIRE(nodes.first->measure(two, in(60s)).has_value());
  const std::vector<std::string> up_one{"up 2"}, up_two{"up 1"};
  BOOST_TEST(nodes.at_one.log == up_one);
  BOOST_TEST(nodes.at_two.log == up_two);
  for (const port* each : {static_cast<const port*>(nodes.first.get()),
                           static_cast<const port*>(nodes.second.get())}) {
    const peer_statistics seen = each->statistics().peers.at(0);
    BOOST_TEST(seen.frames_sent == 0U);
    BOOST_TEST(seen.bytes_sent == 0U);
    BOOST_TEST(seen.frames_received == 0U);
    BOOST_TEST(seen.bytes_received == 0U);
  }
}

BOOST_AUTO_TEST_CASE(pass_frames_as_they_are) {
  loopback_hub hub;
  recording_handler at_one, at_two;
  const auto open = [&](node_id node, recording_handler& handler) {
    return std::move(
        *probed_port::open(handler, [&](port_handler& inner) -> result<std::unique_ptr<port>> {
          return hub.open(node, "n", inner);
        }));
  };
  const auto first = open(one, at_one);
  const auto second = open(two, at_two);
  first->connect(two, "", 1s);
  hub.deliver(1000);
  for (const std::size_t header : {16U, 32U, 40U}) {
    flow::frame frame = frame_of(100, 7);
    frame.header.resize(header, std::byte{7});
    first->send(two, frame);
  }
  hub.deliver(1000);
  BOOST_REQUIRE(at_two.frames.size() == 3U);
  BOOST_TEST(at_two.frames[1].header.size() == 32U);
  BOOST_TEST(at_two.frames[1].payload.bytes() == 105U);
  BOOST_TEST(first->statistics().peers.at(0).frames_sent == 3U);
  first->disconnect(two, {errc::peer_lost, "enough"});
  hub.deliver(1000);
  BOOST_TEST(at_one.log.back() == "lost 2");
}

BOOST_AUTO_TEST_CASE(give_up_on_whoever_does_not_answer) {
  probed_nodes silent({}, false);
  const auto late = silent.first->measure(two, in(20ms));
  BOOST_REQUIRE(!late.has_value());
  BOOST_TEST((late.error().code == errc::timeout));
  const auto nobody = silent.first->measure(node_id{9}, in(60s));
  BOOST_REQUIRE(!nobody.has_value());
  BOOST_TEST((nobody.error().code == errc::peer_lost));
}

BOOST_AUTO_TEST_CASE(end_measuring_with_the_connection) {
  probed_nodes silent({}, false);
  auto measuring =
      std::async(std::launch::async, [&] { return silent.first->measure(two, in(60s)); });
  silent.first->disconnect(two, {errc::peer_lost, "it went"});
  const auto found = measuring.get();
  BOOST_REQUIRE(!found.has_value());
  BOOST_TEST(found.error().message == "it went");
}

BOOST_AUTO_TEST_CASE(end_measuring_when_told_to) {
  probed_nodes silent({}, false);
  auto measuring =
      std::async(std::launch::async, [&] { return silent.first->measure(two, in(60s)); });
  silent.first->abandon();
  const auto found = measuring.get();
  BOOST_REQUIRE(!found.has_value());
  BOOST_TEST((found.error().code == errc::cancelled));
}

BOOST_AUTO_TEST_SUITE_END()
