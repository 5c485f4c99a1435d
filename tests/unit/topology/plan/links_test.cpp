// Goal: declared links are planned, and turn the bytes of a cut into time. Method: two nodes over a
// gigabit of 20 ms, over one that differs by direction, and a split that asks over the link;
// numbers worked out by hand.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/unit/topology/plan/support.hpp"
#include "topology/plan/link_costs.hpp"
#include "topology/plan/render.hpp"

using namespace cedar;
using namespace cedar::topology;
using namespace cedar::topology::test;
using namespace std::chrono_literals;

namespace {

// Decode steps have 4 rows here.
plan planned_gigabit() {
  return planned(
      two_nodes +
      "links: [{between: [front, back], latency_ms: 20, bandwidth_mbps: 1000, jitter_ms: 2, "
      "loss: 0.001}]\n");
}

cost_basis basis_of(const plan& p, double rate = 0) {
  cost_basis basis = largest_basis(p);
  basis.steps_per_second = rate;
  return basis;
}

std::vector<std::string> names(const plan& p, const link_path& path) {
  std::vector<std::string> out;
  for (const edge_id edge : path.edges) out.push_back(p[edge].name);
  return out;
}

void check_has(const std::string& text, const std::vector<std::string>& lines) {
  for (const std::string& line : lines)
    BOOST_TEST(std::regex_search(text, std::regex(line)), line << " in\n" << text);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(links)

BOOST_AUTO_TEST_CASE(are_planned_in_both_directions_or_one) {
  const plan p = planned_gigabit();
  const node_id front = p.find_node("front")->id, back = p.find_node("back")->id;
  const link_shape shape{20ms, 2ms, 125e6, 0.001};
  BOOST_REQUIRE(p.links().size() == 2U);
  BOOST_TEST((*p.link(front, back) == shape));
  BOOST_TEST((*p.link(back, front) == shape));
  const plan one = planned(two_nodes + "links: [{from: back, to: front, latency_ms: 0.25}]\n");
  BOOST_TEST((one.link(front, back) == nullptr));
  BOOST_TEST((*one.link(back, front) == link_shape{.latency = 250us}));
  BOOST_TEST(planned(two_nodes).links().empty());
}

BOOST_AUTO_TEST_CASE(mistakes_are_reported_at_their_places) {
  const auto found = mistakes(two_nodes +
                              "links:\n"
                              "  - {between: [front, bcak], latency_ms: 1}\n"
                              "  - {from: back, to: back}\n"
                              "  - {between: [front, back]}\n"
                              "  - {from: back, to: front, latency_ms: 3}\n"
                              "  - {between: [back, front]}\n"
                              "  - {from: frnt}\n"
                              "  - {from: frnt, to: back, loss: much}\n");
  const std::vector<std::string> wanted = {
      "20:23 there is no node 'bcak' | did you mean 'back'?",
      "21:22 a link leads from node 'back' to itself | name two nodes",
      "23:5 the link from 'back' to 'front' is described twice; the first is in line 22 | remove "
      "one of them",
      "24:5 the link from 'back' to 'front' is described twice; the first is in line 22 | remove "
      "one of them",
      "25:5 'links[5]' must say where it leads, by 'between' or by 'from' and 'to' | write "
      "between: [NODE, NODE] for both directions, from: NODE, to: NODE for one",
      "26:12 there is no node 'frnt' | did you mean 'front'?",
      "26:34 'links[6].loss' must be a number, not 'much'"};
  BOOST_TEST(found == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(are_strict_only_about_what_they_claim) {
  const std::string one = "links: [{between: [front, back], latency_ms: 1}]\n";
  BOOST_TEST(!planned(two_nodes + one).strict_links());
  BOOST_TEST(planned(two_nodes + one + "strict_links: true\n").strict_links());
  const std::vector<std::string> wanted = {
      "19:15 'strict_links' is true, but 'links' claims nothing | write links: [{between: [NODE, "
      "NODE], latency_ms: 20}]"};
  BOOST_TEST(mistakes(two_nodes + "strict_links: true\n") == wanted,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(cost_the_latency_and_the_bytes) {
  const plan p = planned_gigabit();
  const auto costs = link_costs_of(p, basis_of(p, 100));
  BOOST_REQUIRE(costs.size() == 2U);
  // Two step tables, the activation, two verdicts.
  const link_cost& there = costs[0];
  BOOST_TEST(p[there.from].name == "front");
  BOOST_TEST(there.decode_step == 160U + 160 + 4260 + 52 + 52);
  BOOST_TEST(there.full_step == 544U + 544 + 104'196 + 52 + 52);
  BOOST_TEST((there.decode_time == 20ms + 4684 * 8ns));
  BOOST_TEST((there.full_time == 20ms + 105'388 * 8ns));
  BOOST_TEST(there.per_second == 468'400.0);
  BOOST_TEST(there.busy == 468'400 / 125e6);
  const link_cost& back = costs[1];
  BOOST_TEST(back.decode_step == 80U);
  BOOST_TEST((back.full_time == 20ms + 2000 * 8ns));
  BOOST_TEST(link_costs_of(planned(two_nodes), basis_of(p)).size() == 2U);
  BOOST_TEST(!link_costs_of(planned(two_nodes), basis_of(p))[0].decode_time.has_value());
}

BOOST_AUTO_TEST_CASE(are_crossed_by_a_longest_way) {
  const plan p = planned_gigabit();
  const link_path path = longest_link_path(p, step_kind::decode, basis_of(p));
  BOOST_TEST((path.time == 40ms + (4260 + 80) * 8ns));
  BOOST_TEST((names(p, path) == std::vector<std::string>{"encoder -> decoder activation",
                                                         "head -> scheduler proposal"}));
  BOOST_TEST(
      (longest_link_path(p, step_kind::full, basis_of(p)).time == 40ms + (104'196 + 2000) * 8ns));
  const plan bare = planned(two_nodes);
  BOOST_TEST((longest_link_path(bare, step_kind::full, basis_of(bare)).time == 0ms));
}

BOOST_AUTO_TEST_CASE(are_crossed_by_requests_for_entries_there_and_back_for_each_group) {
  const std::string text =
      with(with(two_nodes, "layers: 0-5", "layers: 0-8"), "layers: 6-11", "layers: 9-11") +
      "splits: [{owner: 6, mode: gather}]\n"
      "links: [{from: front, to: back, latency_ms: 10}, "
      "{from: back, to: front, latency_ms: 1}]\n";
  const plan p = planned(text);
  // Layers 9 to 11 read by the selections of layers 8 and 10.
  const link_path path = longest_link_path(p, step_kind::decode, basis_of(p));
  BOOST_TEST((path.time == 10ms + 2 * (1ms + 10ms) + 1ms));
  BOOST_TEST((names(p, path).size() == 4U));
  BOOST_TEST(names(p, path)[1] == "decoder -> encoder gather_request of layer 6");
  BOOST_TEST(names(p, path)[2] == "encoder -> decoder gathered of layer 6");
}

BOOST_AUTO_TEST_CASE(go_round_by_the_unit_that_is_far) {
  // The engram's rows come from the other node before the first stage can begin.
  const plan p =
      planned(with(two_nodes, "engram: {device: front-cpu}", "engram: {device: back-cpu}") +
              "links: [{between: [front, back], latency_ms: 10}]\n");
  const link_path path = longest_link_path(p, step_kind::decode, basis_of(p));
  BOOST_TEST((path.time == 40ms));
  BOOST_TEST(names(p, path).front() == "scheduler -> engram step_table");
}

BOOST_AUTO_TEST_CASE(stand_in_the_text) {
  const plan p = planned_gigabit();
  check_has(
      render_plan(p, basis_of(p)),
      {"a full step has 100 rows of 4 requests, link ms: of a decode step\\)",
       "decode step full step link ms +credit",
       "encoder -> decoder activation +between nodes +1,041 +4,260 +104,196 +20.034 ",
       "embedding -> encoder embedded +in memory +257 +1,124 +25,796 +- ",
       "from +to +link +decode step +ms full step +ms\n",
       "front back +20 ms, 1000 Mbit/s, jitter 2 ms, loss 0.1 % +4,684 20.037 +105,388 20.843",
       "back +front +20 ms, 1000 Mbit/s, jitter 2 ms, loss 0.1 % +80 20.001 +2,000 20.016",
       "a decode step spends at least 40.035 ms on links: encoder -> decoder activation, head "
       "-> scheduler proposal\n",
       "a full step spends at least 40.850 ms on links: "});
  check_has(render_plan(p, basis_of(p, 20'000)),
            {"ms +a second +% of its bandwidth\n", "20.843 +93,680,000 +74.9\n"});
  const plan one = planned(two_nodes + "links: [{from: back, to: front, latency_ms: 5}]\n");
  check_has(render_plan(one, basis_of(one, 10)),
            {"front back +not declared +4,684 +- +105,388 +- +46,840 +-\n",
             "a decode step spends at least 5.000 ms on links: head -> scheduler proposal\n"});
  const std::string none = render_plan(planned(two_nodes));
  BOOST_TEST(none.find("link") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(are_named_in_a_line) {
  BOOST_TEST(render_links(planned_gigabit()) ==
             "front <-> back 20 ms, 1000 Mbit/s, jitter 2 ms, loss 0.1 %");
  BOOST_TEST(render_links(planned(two_nodes +
                                  "links: [{from: front, to: back, latency_ms: 1}, {from: back, "
                                  "to: front, latency_ms: 2}]\n")) ==
             "front -> back 1 ms; back -> front 2 ms");
  BOOST_TEST(render_links(planned(two_nodes + "links: [{between: [back, front]}]\n")) ==
             "front <-> back 0 ms");
}

BOOST_AUTO_TEST_CASE(stand_in_json_and_in_drawings) {
  const plan p = planned_gigabit();
  const auto root = nlohmann::json::parse(render_json(p, basis_of(p, 100)));
  const auto& there = root["links"][0];
  BOOST_TEST(there["from"] == "front");
  BOOST_TEST(there["declared"] == true);
  BOOST_TEST(there["latency_ms"] == 20.0);
  BOOST_TEST(there["jitter_ms"] == 2.0);
  BOOST_TEST(there["bandwidth_mbps"] == 1000.0);
  BOOST_TEST(there["loss"] == 0.001);
  BOOST_TEST(there["decode_step"] == 4684);
  BOOST_TEST(there["decode_step_ms"] == 20.037472);
  BOOST_TEST(there["busy"] == 468'400 / 125e6);
  BOOST_TEST(root["on_links"]["decode_step"]["ms"] == 40.03472);
  BOOST_TEST(root["on_links"]["full_step"]["edges"].size() == 2U);
  for (const auto& edge : root["edges"])
    BOOST_TEST(edge["decode_step_ms"].is_null() ==
               (!edge["between_nodes"].get<bool>() || edge["kind"] == "tap"));
  const auto bare = nlohmann::json::parse(render_json(planned(two_nodes), basis_of(p)));
  BOOST_TEST(bare["links"][0]["declared"] == false);
  BOOST_TEST(bare["links"][0]["decode_step_ms"].is_null());
  BOOST_TEST(bare["links"][0]["bandwidth_mbps"].is_null());
  const std::string svg = render_svg(p, basis_of(p));
  BOOST_TEST(svg.find(">activation 1,041 B, 20.034 ms</text>") != std::string::npos);
  BOOST_TEST(svg.find("; milliseconds of a decode step on the links declared.") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
