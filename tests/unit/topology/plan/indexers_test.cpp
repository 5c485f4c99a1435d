// Goal: indexers get the edges, bytes, memory and proof that they need, and every mistake about
// them is named at its place. Method: cedar-tiny (top-k 32, 16 blocks of 8, index heads 4 of 32)
// with indexers beside its two stages; edges and bytes are worked out by hand.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "runtime/stage/indexer_stage.hpp"
#include "tests/unit/topology/plan/support.hpp"
#include "topology/plan/link_costs.hpp"
#include "topology/plan/render.hpp"

using namespace cedar;
using namespace cedar::topology;
using namespace cedar::topology::test;
using namespace std::chrono_literals;

namespace {

const std::string first_half = "{name: low, owner: 6, device: one-cpu}";
const std::string other_half = "{name: high, owner: 6, device: two-cpu}";
const std::string pairs = "{name: pairs, owner: 2, device: one-cpu}";

/// The two-node file with these indexers; devices of two more nodes.
std::string with_indexers(const std::vector<std::string>& shards) {
  std::string list = "  indexers:\n";
  for (const std::string& shard : shards) list += "    - " + shard + "\n";
  std::string text = with(two_nodes, "  head:", list + "  head:");
  text = with(text, "  back: {address: 127.0.0.1}\n",
              "  back: {address: 127.0.0.1}\n  one: {}\n  two: {}\n");
  return with(text, "  back-cpu: {node: back}\n",
              "  back-cpu: {node: back}\n  one-cpu: {node: one}\n  two-cpu: {node: two}\n");
}

const edge_plan& edge_called(const plan& p, const std::string& name) {
  const auto found = std::ranges::find(p.edges(), name, &edge_plan::name);
  BOOST_REQUIRE_MESSAGE(found != p.edges().end(), "the plan lacks edge " << name);
  return *found;
}

std::vector<std::string> indexer_edges(const plan& p) {
  std::vector<std::string> out;
  for (const edge_plan& edge : p.edges())
    if (p.shard_of(edge) != nullptr) out.push_back(edge.name);
  return out;
}

const auto by_element = boost::test_tools::per_element();
using layers = std::vector<std::uint32_t>;

// Four heads of 16 bytes of codes, a scale and a weight; positions and blocks of 4 bytes, and 2 of
// a score.
constexpr std::uint64_t query = 4 * (16 + 1 + 2);
constexpr std::uint64_t pool_query = query + 16 * 4;
constexpr std::uint64_t choice = 32 * 6;
constexpr std::uint64_t pool_choice = (32 + 16) * 6;
constexpr std::uint64_t key = 17;
constexpr std::uint64_t span = 24;

/// The mistakes of a file with these indexers, without their lines.
std::vector<std::string> mistakes_of(const std::vector<std::string>& shards,
                                     const std::string& context = "1000") {
  std::vector<std::string> out =
      mistakes(with(with_indexers(shards), "context: 1000", "context: " + context));
  for (std::string& one : out) one = one.substr(one.find(':') + 1);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(indexers_of_a_plan)

BOOST_AUTO_TEST_CASE(are_fed_by_their_owner_and_asked_by_its_index_sources) {
  const plan p = planned(with_indexers({first_half, pairs, other_half}));
  BOOST_TEST(
      indexer_edges(p) ==
          (std::vector<std::string>{"encoder -> pairs index_keys of layer 2",
                                    "decoder -> low index_keys of layer 6",
                                    "decoder -> high index_keys of layer 6",
                                    "encoder -> pairs index_query", "pairs -> encoder index_choice",
                                    "decoder -> low index_query", "decoder -> low pool_query",
                                    "low -> decoder index_choice", "low -> decoder pool_choice",
                                    "decoder -> high index_query", "decoder -> high pool_query",
                                    "high -> decoder index_choice", "high -> decoder pool_choice"}),
      by_element);
  const edge_plan& asks = edge_called(p, "decoder -> high pool_query");
  BOOST_TEST(asks.slice == 2U);
  BOOST_TEST(asks.reader == 6U);
  BOOST_TEST(asks.layer == 0U);
  BOOST_TEST(asks.groups == (layers{8, 10}), by_element);
  BOOST_TEST(asks.window_messages == 1U);
  BOOST_TEST(asks.message_bytes_max == 100 * pool_query + 4 * span);
  BOOST_TEST(asks.step_bytes_max == 2 * asks.message_bytes_max);
  BOOST_TEST(edge_called(p, "decoder -> high index_query").groups == (layers{6}), by_element);
  BOOST_TEST(edge_called(p, "high -> decoder index_choice").groups == (layers{8, 10}), by_element);
  BOOST_TEST(edge_called(p, "high -> decoder pool_choice").message_bytes_max ==
             100 * pool_choice + 4 * span);
  const edge_plan& keys = edge_called(p, "decoder -> high index_keys of layer 6");
  BOOST_TEST(keys.slice == 2U);
  BOOST_TEST(keys.layer == 6U);
  BOOST_TEST(keys.window_messages == 3U);
  BOOST_TEST(keys.queue_messages_max == 6U);
  // Of the second of two, in blocks of 8.
  BOOST_TEST((*p.shard_of(keys) == model::index_shard{2, 6, 1, 2, 8}));
}

BOOST_AUTO_TEST_CASE(hear_of_steps_and_verdicts) {
  const plan p = planned(with_indexers({first_half, other_half}));
  for (const char* name : {"low", "high"}) {
    std::vector<edge_kind> kinds;
    for (const edge_id edge : p.edges_into(unit_called(p, name))) kinds.push_back(p[edge].kind);
    BOOST_TEST((kinds == std::vector<edge_kind>{edge_kind::step_table, edge_kind::index_keys,
                                                edge_kind::index_query, edge_kind::pool_query,
                                                edge_kind::verdict}));
  }
}

BOOST_AUTO_TEST_CASE(leave_no_key_to_a_stage) {
  const std::string cut =
      with(with(with_indexers({first_half, other_half}), "layers: 0-5", "layers: 0-7"),
           "layers: 6-11", "layers: 8-11") +
      "splits: [{owner: 6, mode: mirror}]\n";
  const plan p = planned(cut);
  const auto names = indexer_edges(p);
  BOOST_TEST(std::ranges::count(names, "encoder -> low index_query") == 1);
  BOOST_TEST(std::ranges::count(names, "decoder -> low pool_query") == 1);
  BOOST_TEST(std::ranges::count(names, "decoder -> low index_query") == 0);
  BOOST_TEST(edge_called(p, "low -> encoder pool_choice").groups == (layers{6}), by_element);
  for (const edge_plan& edge : p.edges())
    BOOST_TEST((edge.kind != edge_kind::index_keys || p.shard_of(edge) != nullptr));
}

BOOST_AUTO_TEST_CASE(have_the_bytes_of_rows_that_see_their_entries) {
  const plan p = planned(with_indexers({first_half, pairs, other_half}));
  flow::step_table table;
  // Positions 5-9 and 30; of the first, 5 and 6 end in the encoder.
  table.spans = {{request_id{1}, 5, 5, 5, 7}, {request_id{2}, 30, 1, 0}};
  table.tokens.assign(6, 5);
  const auto bytes = [&](const char* name) {
    return p.expected_bytes(edge_called(p, name).id, table);
  };
  // Entries 0-7 and 16-23 are the low half's, 8-15 and 24-31 the high half's.
  BOOST_TEST(bytes("decoder -> low index_keys of layer 6") == 3 * key + 2 * span);
  BOOST_TEST(bytes("decoder -> high index_keys of layer 6") == 3 * key + 2 * span);
  BOOST_TEST(bytes("decoder -> low index_query") == 4 * query + 2 * span);
  BOOST_TEST(bytes("decoder -> high index_query") == 3 * query + 2 * span);
  BOOST_TEST(bytes("decoder -> high pool_query") == 2 * (3 * pool_query + 2 * span));
  BOOST_TEST(bytes("high -> decoder index_choice") == 2 * (3 * choice + 2 * span));
  BOOST_TEST(bytes("high -> decoder pool_choice") == 3 * pool_choice + 2 * span);
  // Pairs 2, 3 and 4; every row of the encoder sees one.
  BOOST_TEST(bytes("encoder -> pairs index_keys of layer 2") == 3 * key + 2 * span);
  BOOST_TEST(bytes("encoder -> pairs index_query") == 6 * query + 2 * span);
  table.spans[1].stored = 16;
  BOOST_TEST(bytes("encoder -> pairs index_query") == 6 * query + 2 * span + 8);
  // Neither keys nor rows: no message.
  table.spans = {{request_id{1}, 0, 7, 7, 7}};
  table.tokens.assign(7, 5);
  for (const char* name : {"decoder -> high index_keys of layer 6", "decoder -> low index_query",
                           "decoder -> high pool_query", "high -> decoder pool_choice"})
    BOOST_TEST(bytes(name) == 0U, name);
}

BOOST_AUTO_TEST_CASE(cost_what_a_row_at_its_position_asks) {
  const plan p = planned(with_indexers({first_half, other_half}));
  const auto cost = [&](const char* name, std::uint32_t positions) {
    return cost_of(p, edge_called(p, name).id, {{2, positions}, 10});
  };
  const edge_cost asks = cost("decoder -> high pool_query", 100);
  BOOST_TEST(asks.decode_row == 2.0 * pool_query);
  BOOST_TEST(asks.decode_step == 2 * 2 * (pool_query + span));
  BOOST_TEST(asks.per_second == 10.0 * static_cast<double>(asks.decode_step));
  BOOST_TEST(cost("decoder -> high pool_query", 8).decode_step == 0U);
  // A row makes a key of this half every other time; one of two rows three of four times.
  const edge_cost keys = cost("decoder -> high index_keys of layer 6", 100);
  BOOST_TEST(keys.decode_row == key / 2.0);
  BOOST_TEST(keys.decode_step == key + 3 * 2 * span / 4);
}

BOOST_AUTO_TEST_CASE(take_their_sources_there_and_back_on_links) {
  // Layers 6, 8 and 10 ask both at once: the far one counts.
  const plan p = planned(with_indexers({first_half, other_half}) +
                         "links:\n  - {between: [back, one], latency_ms: 1}\n"
                         "  - {between: [back, two], latency_ms: 10}\n");
  const link_path path = longest_link_path(p, step_kind::decode, {{1, 100}, 0});
  BOOST_TEST((path.time == 3 * 20ms));
  std::vector<std::string> names;
  for (const edge_id edge : path.edges) names.push_back(p[edge].name);
  BOOST_TEST(names == (std::vector<std::string>{
                          "decoder -> high index_query", "high -> decoder pool_choice",
                          "decoder -> high pool_query", "high -> decoder index_choice"}),
             by_element);
}

BOOST_AUTO_TEST_CASE(need_the_memory_that_they_take) {
  const std::string text = with_indexers({first_half, pairs, other_half});
  for (const std::string& limits :
       {std::string("context: 1000"), std::string("context: 1000, kv_positions: 1024"),
        std::string("context: 1000, prefix_positions: 700")}) {
    const plan p = planned(with(text, "context: 1000", limits));
    const model::schedule schedule(p.model());
    for (const memory_load load : {memory_load{4, 1000}, memory_load{1, 1}, memory_load{3, 129}}) {
      const auto needs = memory_of_units(p, load);
      for (const unit_plan& unit : p.units())
        if (const auto* role = std::get_if<indexer_role>(&unit.role))
          BOOST_TEST(needs[unit.id.value].kv ==
                     64 * key *
                         stage::key_pages_needed(
                             schedule, {role->shard, load.requests, load.positions,
                                        p.limits().kv_granules, p.limits().prefix_granules}));
    }
  }
  const plan whole = planned(two_nodes);
  const plan divided = planned(text);
  const auto kv = [](const plan& p, const char* unit) {
    return memory_of_units(p, {4, 1000})[unit_called(p, unit).value].kv;
  };
  // 16 pages of each request.
  BOOST_TEST(kv(whole, "decoder") - kv(divided, "decoder") == 4 * 16 * 64 * key);
  BOOST_TEST(kv(divided, "low") == 4 * 8 * 64 * key);
}

BOOST_AUTO_TEST_CASE(are_rendered_with_their_share) {
  const plan p = planned(with_indexers({first_half, other_half}));
  const std::string text = render_plan(p);
  BOOST_TEST(text.find("index keys of layer 6, part 2 of 2") != std::string::npos);
  BOOST_TEST(text.find("140 an asking row + 24 a request, for each of layers 8, 10") !=
             std::string::npos);
  const std::string json = render_json(p, largest_basis(p));
  BOOST_TEST(json.find("\"asking_row\": 140") != std::string::npos);
  BOOST_TEST(json.find("\"index_keys_of_layer\": 6") != std::string::npos);
  BOOST_TEST(render_svg(p, largest_basis(p)).find("index keys of layer 6, part 1 of 2") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(of_layers_without_keys_are_mistakes) {
  BOOST_TEST(
      mistakes_of(
          {"{name: a, owner: 8, device: one-cpu}", "{name: b, owner: 12, device: two-cpu}"}) ==
          (std::vector<std::string>{
              "24 layer 8 of indexer 'a' makes no index keys | the owners are layers 2, 4, 6",
              "24 layer 12 of indexer 'b' makes no index keys | the owners are layers 2, 4, "
              "6"}),
      by_element);
}

BOOST_AUTO_TEST_CASE(that_no_request_is_long_enough_for_are_mistakes) {
  BOOST_TEST(
      mistakes_of({"{name: a, owner: 2, device: one-cpu}", "{name: b, owner: 2, device: two-cpu}",
                   "{name: c, owner: 2, device: two-cpu}"},
                  "32") ==
          (std::vector<std::string>{
              "24 indexer 'c' would hold nothing: 32 positions make 16 entries at layer 2, in "
              "blocks of 8 | remove the entry, or raise limits.context"}),
      by_element);
}

BOOST_AUTO_TEST_CASE(need_names_and_devices) {
  BOOST_TEST(
      mistakes_of({"{name: decoder, owner: 2, device: one-cpu}",
                   "{name: head, owner: 4, device: two-cpux}"}) ==
          (std::vector<std::string>{
              "14 two stages, slices of experts or indexers are called 'decoder' | messages "
              "and traces name stages, slices of experts or indexers: give each its own name",
              "14 an indexer cannot be called 'head': that is the name of another unit",
              "38 there is no device 'two-cpux' | did you mean 'two-cpu'?"}),
      by_element);
}

BOOST_AUTO_TEST_SUITE_END()
