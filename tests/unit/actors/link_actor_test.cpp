// Goal: packets cross the network as frames and come back as packets, for units that they are meant
// for; everything else is refused by name. Method: links and switchboards of two nodes over a
// loopback hub, delivered step by step; frames that should not be are made by hand.
#include "actors/link_actor.hpp"

#include <boost/test/unit_test.hpp>

#include "runtime/transport/loopback_hub.hpp"
#include "runtime/wire/encode.hpp"
#include "tests/unit/actors/test_system.hpp"

using namespace cedar;
using namespace cedar::actors;
using namespace cedar::test;

namespace {

constexpr node_id here{1}, there{2}, elsewhere{3};

/// A node that hears others, and what it thought of their frames.
struct hearing_node {
  hearing_node()
      : board({[this](node_id peer) { up.push_back(peer); },
               [this](node_id, const error& reason) { lost.push_back(reason.message); },
               [this](node_id from, const error& what) {
                 refused.push_back(std::to_string(from.value) + ": " + what.message);
               }}) {}

  std::vector<node_id> up;
  std::vector<std::string> lost, refused;
  switchboard board;
};

struct two_nodes {
  two_nodes()
      : near_port(hub.open(here, "here", near.board)),
        far_port(hub.open(there, "there", far.board)) {
    near_port->connect(there, far_port->address(), {});
    settle();
    far.board.connect({{edge_id{5}, {here, true, actors.packet_recorder(arrived)}},
                       {edge_id{6}, {here, false, actors.packet_recorder(credited)}}});
  }

  void settle() {
    while (hub.deliver(10) > 0) continue;
    actors.run();
  }
  void send_by_hand(const packet_ref& packet) {
    near_port->send(there, wire::encode(packet->head, packet->body));
    settle();
  }

  std::vector<flow::stamped_message> arrived, credited;
  hearing_node near, far;
  transport::loopback_hub hub;
  std::unique_ptr<transport::port> near_port, far_port;
  test_system actors;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(links)

BOOST_AUTO_TEST_CASE(packets_arrive_whole_and_in_order_at_the_unit_of_their_edge) {
  two_nodes nodes;
  BOOST_TEST((nodes.near.up == std::vector{there}));
  const link_actor link =
      nodes.actors.keep(spawn_link(nodes.actors.system(), *nodes.near_port, there));
  for (std::uint64_t step = 1; step <= 3; ++step)
    caf::anon_send(link, packet_of(5, step - 1, block_of(step, flow::row_kind::activation)));
  caf::anon_send(link, packet_of(6, 0, flow::credit{{}, 1, 64}));
  nodes.actors.run();
  nodes.settle();
  BOOST_REQUIRE_EQUAL(nodes.arrived.size(), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    BOOST_TEST(nodes.arrived[i].head.sequence == i);
    const auto& block = std::get<flow::row_block>(nodes.arrived[i].body);
    BOOST_TEST(block.step.value == i + 1);
    BOOST_TEST(flow::bytes_of(block.payload).size() == 64U);
  }
  BOOST_REQUIRE_EQUAL(nodes.credited.size(), 1U);
  BOOST_TEST(std::get<flow::credit>(nodes.credited[0].body).bytes == 64U);
  BOOST_TEST(nodes.far.refused.empty());
}

BOOST_AUTO_TEST_CASE(frames_that_do_not_belong_are_refused_and_reach_nobody) {
  two_nodes nodes;
  nodes.send_by_hand(packet_of(9, 0, table_of(1)));  // no such edge
  nodes.send_by_hand(packet_of(6, 0, table_of(1)));  // messages leave there
  nodes.send_by_hand(packet_of(5, 0, flow::credit{{}, 1, 1}));  // messages arrive there
  nodes.near_port->send(there, {{std::byte{1}}, nullptr, {}});  // no frame at all
  nodes.settle();
  BOOST_REQUIRE_EQUAL(nodes.far.refused.size(), 4U);
  for (const auto& [index, edge] : {std::pair{0U, 9}, {1U, 6}, {2U, 5}})
    BOOST_TEST(nodes.far.refused[index] == "1: a frame on edge " + std::to_string(edge) +
                                               ", which does not come from that node");
  BOOST_TEST(nodes.far.refused[3].find("frame") != std::string::npos);
  BOOST_TEST(nodes.arrived.empty());
  BOOST_TEST(nodes.credited.empty());
}

BOOST_AUTO_TEST_CASE(an_edge_is_heard_from_its_own_node_only) {
  two_nodes nodes;
  hearing_node third;
  const auto third_port = nodes.hub.open(elsewhere, "elsewhere", third.board);
  third_port->connect(there, nodes.far_port->address(), {});
  nodes.settle();
  const packet_ref packet = packet_of(5, 0, table_of(1));
  third_port->send(there, wire::encode(packet->head, packet->body));
  nodes.settle();
  BOOST_REQUIRE_EQUAL(nodes.far.refused.size(), 1U);
  BOOST_TEST(nodes.far.refused[0].find("3: a frame on edge 5") == 0U);
  BOOST_TEST(nodes.arrived.empty());
}

BOOST_AUTO_TEST_CASE(frames_before_the_edges_are_connected_are_refused) {
  two_nodes nodes;
  nodes.far_port->send(here, wire::encode(packet_of(5, 0, table_of(1))->head, table_of(1)));
  nodes.settle();
  BOOST_TEST(nodes.near.refused.size() == 1U);
}

BOOST_AUTO_TEST_CASE(the_loss_of_a_peer_is_passed_on) {
  two_nodes nodes;
  nodes.near_port->disconnect(there, {errc::timeout, "silent"});
  nodes.settle();
  BOOST_TEST(nodes.near.lost == std::vector<std::string>{"silent"},
             boost::test_tools::per_element());
  BOOST_TEST(nodes.far.lost.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
