// Goal: cycles and windows that are too small are found and named; sound graphs get an order.
// Method: small graphs made by hand; the order is checked edge by edge.
#include "topology/plan/internal/credit_proof.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>

using namespace cedar::topology::internal;

namespace {

// Unit 0 is the scheduler.
proof_edge edge(std::uint32_t from, std::uint32_t to) {
  return {from, to, std::to_string(from) + ">" + std::to_string(to), 10, 2, 20};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(credit_proof)

BOOST_AUTO_TEST_CASE(orders_units_so_that_edges_point_forward) {
  const std::vector<proof_edge> edges = {edge(0, 4), edge(4, 2), edge(2, 3), edge(4, 3),
                                         edge(3, 1), edge(1, 0), edge(0, 1)};
  const auto order = prove_no_deadlock(5, 0, 2, edges);
  BOOST_REQUIRE(order);
  BOOST_REQUIRE(order->size() == 5U);
  const auto at = [&](std::uint32_t unit) { return std::find(order->begin(), order->end(), unit); };
  for (const proof_edge& each : edges) {
    if (each.producer != 0 && each.consumer != 0) {
      BOOST_TEST((at(each.producer) < at(each.consumer)), each.name);
    }
  }
}

BOOST_AUTO_TEST_CASE(names_the_edges_of_a_cycle_and_only_those) {
  const auto proof = prove_no_deadlock(
      6, 0, 2,
      {edge(0, 1), edge(1, 2), edge(2, 3), edge(3, 4), edge(4, 2), edge(4, 5), edge(5, 0)});
  BOOST_REQUIRE(!proof);
  BOOST_TEST(proof.error() == "edges wait for each other in a circle: '2>3', '3>4', '4>2'");
}

BOOST_AUTO_TEST_CASE(finds_a_unit_that_waits_for_itself) {
  const auto proof = prove_no_deadlock(2, 0, 1, {edge(0, 1), edge(1, 1)});
  BOOST_REQUIRE(!proof);
  BOOST_TEST(proof.error() == "edges wait for each other in a circle: '1>1'");
}

BOOST_AUTO_TEST_CASE(what_is_taken_when_it_comes_needs_room_for_one_message) {
  proof_edge aside = edge(0, 1);
  aside.role = edge_role::aside;
  aside.window_messages = 1;
  aside.window_bytes = 10;
  BOOST_TEST(prove_no_deadlock(2, 0, 2, {edge(0, 1), edge(1, 0), aside}).has_value());
  aside.window_bytes = 9;
  BOOST_TEST(!prove_no_deadlock(2, 0, 2, {edge(0, 1), edge(1, 0), aside}));
}

BOOST_AUTO_TEST_CASE(a_loop_through_the_scheduler_is_bounded_by_its_windows) {
  BOOST_TEST(prove_no_deadlock(2, 0, 2, {edge(0, 1), edge(1, 0)}).has_value());
  const auto few_messages = prove_no_deadlock(2, 0, 3, {edge(0, 1), edge(1, 0)});
  BOOST_REQUIRE(!few_messages);
  BOOST_TEST(few_messages.error() == "windows too small for the steps in flight: '0>1', '1>0'");
  auto tight = edge(1, 0);
  tight.window_bytes = 19;
  const auto few_bytes = prove_no_deadlock(2, 0, 2, {edge(0, 1), tight});
  BOOST_REQUIRE(!few_bytes);
  BOOST_TEST(few_bytes.error() == "windows too small for the steps in flight: '1>0'");
}

BOOST_AUTO_TEST_CASE(requests_may_go_back_along_the_streams) {
  auto ask = edge(3, 1);
  ask.role = edge_role::request;
  auto answer = edge(1, 3);
  answer.role = edge_role::reply;
  ask.name = "ask";
  answer.name = "answer";
  // Two messages a step, in windows of one step however many are in flight.
  ask.messages_per_step = answer.messages_per_step = 2;
  const std::vector<proof_edge> chain = {edge(1, 2), edge(2, 3), ask, answer};
  BOOST_TEST(prove_no_deadlock(4, 0, 2, chain).has_value());

  const auto refused = [](const std::vector<proof_edge>& edges, const std::string& text) {
    const auto proof = prove_no_deadlock(4, 0, 2, edges);
    BOOST_REQUIRE(!proof);
    BOOST_TEST(proof.error() == text);
  };
  refused({edge(1, 2), edge(2, 3), ask}, "requests that may never be answered: 'ask'");
  // What it asks for was not made when its inputs were.
  refused({edge(0, 1), edge(2, 3), ask, answer}, "requests that may never be answered: 'ask'");
  refused({edge(1, 2), edge(2, 3), edge(3, 1), ask, answer},
          "edges wait for each other in a circle: '1>2', '2>3', '3>1'");
  auto short_answer = answer;
  short_answer.window_messages = 1;
  refused({edge(1, 2), edge(2, 3), ask, short_answer},
          "windows too small for the steps in flight: 'answer'");
  short_answer = answer;
  short_answer.window_bytes = 19;
  refused({edge(1, 2), edge(2, 3), ask, short_answer},
          "windows too small for the steps in flight: 'answer'");
  // The same edges without their roles are a cycle.
  refused({edge(1, 2), edge(2, 3), edge(3, 1)},
          "edges wait for each other in a circle: '1>2', '2>3', '3>1'");
}

BOOST_AUTO_TEST_CASE(a_unit_that_is_fed_answers_from_it) {
  auto ask = edge(2, 3);
  ask.role = edge_role::request;
  auto answer = edge(3, 2);
  answer.role = edge_role::reply;
  auto feed = edge(2, 3);
  feed.role = edge_role::feed;
  feed.name = "feed";
  // The scheduler tells it of steps; of what others send it knows nothing.
  const std::vector<proof_edge> sound = {edge(0, 1), edge(1, 2), edge(0, 3), ask,
                                         answer,     feed,       edge(2, 0)};
  BOOST_TEST(prove_no_deadlock(4, 0, 2, sound).has_value());
  const auto refused = [](const std::vector<proof_edge>& edges, const std::string& text) {
    const auto proof = prove_no_deadlock(4, 0, 2, edges);
    BOOST_REQUIRE(!proof);
    BOOST_TEST(proof.error() == text);
  };
  std::vector<proof_edge> waiting = sound;
  waiting.push_back(edge(1, 3));
  refused(waiting, "requests that may never be answered: '2>3'");
  std::vector<proof_edge> small = sound;
  small[5].window_messages = 1;
  refused(small, "windows too small for the steps in flight: 'feed'");
}

BOOST_AUTO_TEST_CASE(a_unit_that_takes_nothing_but_requests_answers_them) {
  auto ask = edge(2, 3);
  ask.role = edge_role::request;
  auto answer = edge(3, 2);
  answer.role = edge_role::reply;
  // One message at a time, however many steps are in flight.
  ask.window_messages = answer.window_messages = 1;
  ask.window_bytes = answer.window_bytes = 10;
  const std::vector<proof_edge> sound = {edge(0, 1), edge(1, 2), ask, answer, edge(2, 0)};
  const auto order = prove_no_deadlock(4, 0, 2, sound);
  BOOST_REQUIRE(order);
  BOOST_TEST(order->size() == 4U);
  for (const proof_edge& input : {edge(0, 3), edge(1, 3)}) {
    std::vector<proof_edge> waiting = sound;
    waiting.push_back(input);
    const auto proof = prove_no_deadlock(4, 0, 2, waiting);
    BOOST_REQUIRE(!proof);
    BOOST_TEST(proof.error() == "requests that may never be answered: '2>3'");
  }
}

BOOST_AUTO_TEST_SUITE_END()
