// Goal: shards of Engram's tables get the edges, bytes and weights that they need, and every
// mistake about them is named at its place. Method: cedar-tiny (modules before layers 1 and 4;
// columns of 1511, 1523, 1531, 1543, 1549 and 1553 rows in the first table) with shards beside its
// two stages; edges and bytes are worked out by hand.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "runtime/model/manifest.hpp"
#include "tests/unit/topology/plan/support.hpp"
#include "topology/plan/link_costs.hpp"
#include "topology/plan/memory.hpp"
#include "topology/plan/render.hpp"
#include "topology/plan/tensor_placement.hpp"

using namespace cedar;
using namespace cedar::topology;
using namespace cedar::topology::test;
using namespace std::chrono_literals;

namespace {

// Three columns; of the fourth a part; the others.
const std::string low = "{name: low, layer: 1, rows: 0-4564, device: one-cpu}";
const std::string middle = "{name: middle, layer: 1, rows: 4565-5335, device: two-cpu}";
const std::string high = "{name: high, layer: 1, rows: 5336-, device: one-cpu}";
const std::string other = "{name: other, layer: 4, device: two-cpu}";
const std::vector<std::string> all{high, other, low, middle};

/// The two-node file with these shards; devices of two more nodes.
std::string with_shards(const std::vector<std::string>& shards) {
  std::string list = "  engram:\n";
  for (const std::string& shard : shards) list += "    - " + shard + "\n";
  std::string text = with(two_nodes, "  engram: {device: front-cpu}\n", list);
  text = with(text, "  back: {address: 127.0.0.1}\n",
              "  back: {address: 127.0.0.1}\n  one: {}\n  two: {}\n");
  return with(text, "  back-cpu: {node: back}\n",
              "  back-cpu: {node: back}\n  one-cpu: {node: one}\n  two-cpu: {node: two}\n");
}

const edge_plan& table_edge(const plan& p, const std::string& name) {
  const auto found = std::ranges::find(p.edges(), name, &edge_plan::name);
  BOOST_REQUIRE_MESSAGE(found != p.edges().end(), "the plan lacks edge " << name);
  return *found;
}

const auto by_element = boost::test_tools::per_element();

// 32 codes, a scale; a place beside them.
constexpr std::uint64_t table_row = 33;
constexpr std::uint64_t slot = 4 + table_row;
constexpr std::uint64_t span = 24;

/// The mistakes of a file with these shards, without their lines.
std::vector<std::string> mistakes_of_shards(const std::vector<std::string>& shards) {
  std::vector<std::string> out = mistakes(with_shards(shards));
  for (std::string& one : out) one = one.substr(one.find(':') + 1);
  return out;
}

const std::string hint_1 = " | the table of layer 1 has rows 0-9209: each is on one shard";
const std::string hint_4 = " | the table of layer 4 has rows 0-9455: each is on one shard";

}  // namespace

BOOST_AUTO_TEST_SUITE(shards_of_tables)

BOOST_AUTO_TEST_CASE(send_to_the_stage_of_their_layer) {
  const plan p = planned(with_shards(all));
  std::vector<std::string> edges;
  for (const edge_plan& edge : p.edges())
    if (edge.kind == edge_kind::engram_rows || edge.kind == edge_kind::engram_slots)
      edges.push_back(edge.name);
  BOOST_TEST(edges == (std::vector<std::string>{"high -> encoder engram_slots of layer 1",
                                                "low -> encoder engram_slots of layer 1",
                                                "middle -> encoder engram_slots of layer 1",
                                                "other -> encoder engram_rows of layer 4"}),
             by_element);
  const edge_plan& of_low = table_edge(p, "low -> encoder engram_slots of layer 1");
  BOOST_TEST(of_low.slice == 2U);
  BOOST_TEST(of_low.layer == 1U);
  BOOST_TEST(of_low.crosses());
  BOOST_TEST(of_low.message_bytes_max == 100 * 3 * slot + 4 * span);
  BOOST_TEST(of_low.window_messages == 3U);
  BOOST_TEST(of_low.window_bytes == 3 * of_low.message_bytes_max);
  BOOST_TEST(table_edge(p, "middle -> encoder engram_slots of layer 1").message_bytes_max ==
             100 * slot + 4 * span);
  const auto& stage = std::get<stage_role>(p[unit_called(p, "encoder")].role);
  BOOST_TEST((stage.engram_shards == std::vector<model::engram_shard>{
                                         {0, 1, 5336, 9210}, {2, 1, 0, 4565}, {3, 1, 4565, 5336}}));
  const auto& decoder = std::get<stage_role>(p[unit_called(p, "decoder")].role);
  BOOST_TEST(decoder.engram_shards.empty());
}

BOOST_AUTO_TEST_CASE(hear_of_each_step_and_of_nothing_else) {
  const plan p = planned(with_shards(all));
  for (const char* name : {"low", "middle", "high", "other"}) {
    const auto into = p.edges_into(unit_called(p, name));
    BOOST_REQUIRE(into.size() == 1U);
    BOOST_TEST((p[into[0]].kind == edge_kind::step_table));
  }
}

BOOST_AUTO_TEST_CASE(have_the_bytes_of_what_a_step_addresses) {
  const plan p = planned(with_shards(all));
  flow::step_table table;
  table.spans = {{request_id{1}, 5, 1, 0}, {request_id{2}, 9, 1, 0}};
  table.tokens.assign(2, 5);
  const step_addresses addresses{
      {1, {0, 2000, 4564, 4565, 6200, 9209, 7, 3033, 3034, 5335, 7000, 8000}}, {4, {1, 2}}};
  const auto bytes = [&](const char* name) {
    return p.expected_bytes(table_edge(p, name).id, table, {}, {}, addresses);
  };
  BOOST_TEST(bytes("low -> encoder engram_slots of layer 1") == 6 * slot + 2 * span);
  BOOST_TEST(bytes("middle -> encoder engram_slots of layer 1") == 2 * slot + 2 * span);
  BOOST_TEST(bytes("high -> encoder engram_slots of layer 1") == 4 * slot + 2 * span);
  BOOST_TEST(bytes("other -> encoder engram_rows of layer 4") == 2 * 6 * table_row + 2 * span);
  table.spans[0].stored = 8;
  BOOST_TEST(bytes("low -> encoder engram_slots of layer 1") == 6 * slot + 2 * span + 8);
}

BOOST_AUTO_TEST_CASE(cost_their_share_of_the_columns) {
  const plan p = planned(with_shards(all));
  const cost_basis one_request{{1, 100}, 10};
  const auto cost = [&](const char* name) {
    return cost_of(p, table_edge(p, name).id, one_request);
  };
  BOOST_TEST(cost("low -> encoder engram_slots of layer 1").decode_row == 3.0 * slot);
  BOOST_TEST(cost("low -> encoder engram_slots of layer 1").decode_step == 3 * slot + span);
  const double part = 771.0 / 1543;
  BOOST_TEST(cost("middle -> encoder engram_slots of layer 1").decode_row == part * slot,
             boost::test_tools::tolerance(1e-12));
  BOOST_TEST(cost("high -> encoder engram_slots of layer 1").decode_row == (3 - part) * slot,
             boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(are_on_the_way_of_a_step_on_links) {
  const plan p = planned(with_shards(all) +
                         "links:\n  - {between: [front, one], latency_ms: 3}\n"
                         "  - {between: [front, two], latency_ms: 2}\n");
  const link_path path = longest_link_path(p, step_kind::decode, {{1, 100}, 0});
  // The table there, the rows back.
  BOOST_TEST((path.time == 6ms));
}

BOOST_AUTO_TEST_CASE(hold_their_rows_and_no_others) {
  const plan p = planned(with_shards(all));
  const auto needs = memory_of_units(p, largest_load(p));
  const auto weights = [&](const char* name) { return needs[unit_called(p, name).value].weights; };
  BOOST_TEST(weights("low") == 4565 * table_row);
  BOOST_TEST(weights("middle") == 771 * table_row);
  BOOST_TEST(weights("high") == 3874 * table_row);
  BOOST_TEST(weights("other") == 9456 * table_row);
  for (const model::expected_tensor& tensor : model::manifest(p.model())) {
    if (tensor.part != model::component::engram_table) continue;
    std::uint64_t bytes = 0;
    for (const unit_id reader : readers_of(p, tensor)) bytes += part_of(p[reader], tensor).bytes();
    BOOST_TEST(bytes == tensor.bytes());
    BOOST_TEST(is_in_parts(p, tensor) == (tensor.layer == 1U));
  }
}

BOOST_AUTO_TEST_CASE(are_rendered) {
  const plan p = planned(with_shards(all));
  const std::string text = render_plan(p);
  BOOST_TEST(text.find("rows 4565-5335 of the table of layer 1") != std::string::npos);
  BOOST_TEST(text.find("rows 0-9455 of the table of layer 4") != std::string::npos);
  BOOST_TEST(text.find("37 a table row + 24 a request") != std::string::npos);
  const std::string json = render_json(p, largest_basis(p));
  BOOST_TEST(json.find("\"table_row\": 37") != std::string::npos);
  BOOST_TEST(json.find("5336") != std::string::npos);
  BOOST_TEST(render_svg(p, largest_basis(p)).find("rows 0-4564 of the table of layer 1") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(that_the_model_lacks_are_mistakes) {
  BOOST_TEST(
      mistakes_of_shards({"{name: a, layer: 2, device: one-cpu}",
                          "{name: b, layer: 1, rows: 9000-9210, device: two-cpu}",
                          "{name: c, layer: 4, rows: 9999-, device: two-cpu}"}) ==
          (std::vector<std::string>{
              "24 there is no Engram module before layer 2 for shard 'a' to hold | the model "
              "has modules before layers 1, 4",
              "33 row 9210 of shard 'b' does not exist | the table of layer 1 has rows "
              "0-9209",
              "33 row 9999 of shard 'c' does not exist | the table of layer 4 has rows "
              "0-9455"}),
      by_element);
}

BOOST_AUTO_TEST_CASE(that_overlap_or_lack_rows_are_mistakes) {
  BOOST_TEST(
      mistakes_of_shards({"{name: a, layer: 1, rows: 5-99, device: one-cpu}",
                          "{name: b, layer: 1, rows: 90-5000, device: two-cpu}",
                          "{name: c, layer: 1, rows: 95-98, device: two-cpu}",
                          "{name: d, layer: 1, rows: 5002-9208, device: two-cpu}"}) ==
          (std::vector<std::string>{
              "5 rows 0-9455 of the table of layer 4 are on no shard" + hint_4,
              "33 rows 0-4 of the table of layer 1 are on no shard" + hint_1,
              "33 rows 90-99 of the table of layer 1 on shard 'b' are on shard 'a' too" + hint_1,
              "33 rows 95-98 of the table of layer 1 on shard 'c' are on shard 'b' too" + hint_1,
              "33 row 5001 of the table of layer 1 is on no shard" + hint_1,
              "33 row 9209 of the table of layer 1 is on no shard" + hint_1}),
      by_element);
}

BOOST_AUTO_TEST_CASE(need_names_and_devices) {
  BOOST_TEST(
      mistakes_of_shards({"{name: decoder, layer: 1, device: one-cpu}",
                          "{name: engram, layer: 4, device: two-cpux}"}) ==
          (std::vector<std::string>{
              "14 two stages, slices of experts or shards of tables are called 'decoder' | "
              "messages "
              "and traces name stages, slices of experts or shards of tables: give each its own "
              "name",
              "14 a shard of a table cannot be called 'engram': that is the name of another unit",
              "40 there is no device 'two-cpux' | did you mean 'two-cpu'?"}),
      by_element);
}

BOOST_AUTO_TEST_SUITE_END()
