// Goal: what a row and a step cost at a stated load, and what the other mode of a split would.
// Method: the released model cut inside owners 2 and 20; numbers are those of the architecture's
// table: 288 bytes an entry, 68 a key, 2,048 a selection, 8,192 of candidates, 147,456 gathered.
#include "topology/plan/costs.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/unit/topology/plan/support.hpp"
#include "topology/plan/render.hpp"

using namespace cedar;
using namespace cedar::topology;
using namespace cedar::topology::test;

namespace {

const std::string stages =
    "    - {name: a, layers: 0-4, device: front-cpu}\n"
    "    - {name: b, layers: 5-25, device: front-cpu}\n"
    "    - {name: c, layers: 26-39, device: back-cpu}\n";

plan released(const std::string& mode) {
  const std::string text = with(with(two_nodes,
                                     "    - {name: encoder, layers: 0-5, device: front-cpu}\n"
                                     "    - {name: decoder, layers: 6-11, device: back-cpu}\n",
                                     stages),
                                "context: 1000", "context: 100000");
  return planned(
      text + "splits: [{owner: 2, mode: " + mode + "}, {owner: 20, mode: " + mode + "}]\n",
      "released");
}

edge_cost cost(const plan& p, const std::string& name, const cost_basis& basis) {
  const auto found = std::find_if(p.edges().begin(), p.edges().end(),
                                  [&](const edge_plan& edge) { return edge.name == name; });
  BOOST_REQUIRE_MESSAGE(found != p.edges().end(), "the plan lacks edge " << name);
  return cost_of(p, found->id, basis);
}

const cost_basis basis{{3, 100000}, 20};

}  // namespace

BOOST_AUTO_TEST_SUITE(costs)

BOOST_AUTO_TEST_CASE(of_a_decode_row_are_those_of_the_architecture) {
  const plan p = released("mirror");
  BOOST_TEST(cost(p, "a -> b shared_kv of layer 2", basis).decode_row == 144.0);
  BOOST_TEST(cost(p, "a -> b selection of layer 2", basis).decode_row == 2048.0);
  BOOST_TEST(cost(p, "b -> c shared_kv of layer 20", basis).decode_row == 288.0);
  BOOST_TEST(cost(p, "b -> c index_keys of layer 20", basis).decode_row == 68.0);
  BOOST_TEST(cost(p, "b -> c candidates of layer 20", basis).decode_row == 8192.0);
  BOOST_TEST(cost(p, "b -> c activation", basis).decode_row == 40977.0);
  const plan g = released("gather");
  // Of a's selection of layer 2 b reads one group; c reads those of layers 24, 28, 32 and 36.
  BOOST_TEST(cost(g, "a -> b gathered of layer 2", basis).decode_row == 147456.0);
  BOOST_TEST(cost(g, "b -> c gathered of layer 20", basis).decode_row == 4 * 147456.0);
  BOOST_TEST(cost(g, "c -> b gather_request of layer 20", basis).decode_row == 4 * 2048.0);
}

BOOST_AUTO_TEST_CASE(of_steps_and_seconds_follow) {
  const plan p = released("mirror");
  const edge_cost activation = cost(p, "b -> c activation", basis);
  BOOST_TEST(activation.decode_step == 3U * (40977 + 24));
  BOOST_TEST(activation.largest_step == 100U * 40977 + 4 * 24);
  BOOST_TEST(activation.per_second == 20.0 * 3 * (40977 + 24));
  // Three rows complete one and a half entries.
  BOOST_TEST(cost(p, "a -> b shared_kv of layer 2", basis).decode_step == 3U * (144 + 24));
  BOOST_TEST(cost(p, "c -> scheduler tap", basis).decode_step == 0U);
}

BOOST_AUTO_TEST_CASE(of_both_modes_of_a_split_are_compared) {
  for (const std::string mode : {"mirror", "gather"}) {
    const plan p = released(mode);
    const auto splits = splits_of(p, basis);
    BOOST_REQUIRE(splits.size() == 2U);
    BOOST_TEST(splits[0].owner == 2U);
    BOOST_TEST(splits[0].gather == (mode == "gather"));
    BOOST_REQUIRE(splits[0].readers.size() == 1U);
    BOOST_TEST(p[splits[0].readers[0]].name == "b");
    BOOST_TEST(splits[0].mirror_row == 144.0);
    BOOST_TEST(splits[0].gather_row == 2048 + 147456.0);
    BOOST_TEST(splits[1].mirror_row == 288.0);
    BOOST_TEST(splits[1].gather_row == 4 * (2048 + 147456.0));
    // 1563 pages of 64 entries for each of three requests.
    BOOST_TEST(splits[1].mirror_memory == 3ULL * 1563 * 64 * 288);
    // The mode that the file names costs what its edges cost.
    double edges = 0;
    for (const edge_plan& edge : p.edges())
      if (edge.layer == 20 && (edge.kind == edge_kind::shared_kv || !edge.groups.empty()))
        edges += cost_of(p, edge.id, basis).decode_row;
    BOOST_TEST(edges == (splits[1].gather ? splits[1].gather_row : splits[1].mirror_row));
  }
}

BOOST_AUTO_TEST_CASE(as_json_keep_their_layout) {
  const plan p = released("gather");
  const auto root = nlohmann::json::parse(render_json(p, basis));
  BOOST_TEST(root["cedar_plan"] == 1);
  BOOST_TEST(root["load"].dump() == R"({"positions":100000,"requests":3,"steps_per_second":20.0})");
  BOOST_TEST(root["edges"].size() == p.edges().size());
  for (const auto& edge : root["edges"]) {
    const edge_plan& planned = p[edge_id{edge["id"].get<std::uint32_t>()}];
    const edge_cost cost = cost_of(p, planned.id, basis);
    BOOST_TEST(edge["name"] == planned.name);
    BOOST_TEST(edge["decode_row"] == cost.decode_row);
    BOOST_TEST(edge["full_step"] == cost.largest_step);
    BOOST_TEST(edge["groups"].size() == planned.groups.size());
  }
  const auto keys = [](const nlohmann::json& object) {
    std::string text;
    for (const auto& [key, value] : object.items()) text += key + " ";
    return text;
  };
  BOOST_TEST(
      keys(root) ==
      "cedar_plan devices edges file limits links load nodes on_links splits transport units ");
  BOOST_TEST(keys(root["devices"][0]) == "cores has index kind name needs nice node numa threads ");
  BOOST_TEST(keys(root["devices"][0]["needs"]) == "credit kv total weights working ");
  BOOST_TEST(root["splits"][1]["gather_row"] == 4 * (2048 + 147456));
}

BOOST_AUTO_TEST_CASE(are_drawn_with_every_unit_and_every_edge_of_rows) {
  const plan p = released("gather");
  const std::string svg = render_svg(p, basis);
  BOOST_TEST(svg.find("<svg ") == 0U);
  BOOST_TEST(svg.rfind("</svg>\n") == svg.size() - 7);
  for (const std::string text :
       {">a</text>", ">layers 5-25</text>", ">layers 26-39</text>",
        ">node front (127.0.0.1)</text>", ">back-cpu (cpu)</text>", ">activation 40,977 B</text>",
        ">gathered of layer 20 589,824 B</text>", ">gather_request of layer 20 8,192 B</text>",
        ">engram_rows of layer 14 6,336 B</text>", ">proposal 20 B</text>"})
    BOOST_TEST(svg.find(text) != std::string::npos, text);
}

BOOST_AUTO_TEST_SUITE_END()
