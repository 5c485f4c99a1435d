// Goal: a cut through a Full/Reuse group gets exactly the edges that its mode needs, each between
// the right stages, with exact bytes and windows that hold a step.
// Method: cedar-tiny (owners 2, 4, 6; index sources also 8, 10; candidates from 6) cut inside
// owners 2 and 6; edges and bytes are worked out by hand from the schedule.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "tests/unit/topology/plan/support.hpp"

using namespace cedar;
using namespace cedar::topology;
using namespace cedar::topology::test;

namespace {

using layers = std::vector<std::uint32_t>;

/// Stages a: 0-2, b: 3-6, c: 7-8, d: 9-11 with these modes for owners 2 and 6.
std::string four_stages(const std::string& mode_of_2, const std::string& mode_of_6) {
  return with(two_nodes,
              "    - {name: encoder, layers: 0-5, device: front-cpu}\n"
              "    - {name: decoder, layers: 6-11, device: back-cpu}\n",
              "    - {name: a, layers: 0-2, device: front-cpu}\n"
              "    - {name: b, layers: 3-6, device: front-cpu}\n"
              "    - {name: c, layers: 7-8, device: back-cpu}\n"
              "    - {name: d, layers: 9-11, device: back-cpu}\n") +
         "splits: [{owner: 2, mode: " + mode_of_2 + "}, {owner: 6, mode: " + mode_of_6 + "}]\n";
}

const stage_role& role(const plan& p, const std::string& name) {
  return std::get<stage_role>(p[unit_called(p, name)].role);
}

bool is_shared_state(edge_kind kind) {
  return kind >= edge_kind::shared_kv && kind <= edge_kind::gathered;
}

std::vector<std::string> shared_edges(const plan& p) {
  std::vector<std::string> names;
  for (const edge_plan& edge : p.edges())
    if (is_shared_state(edge.kind)) names.push_back(edge.name);
  return names;
}

const edge_plan& edge_called(const plan& p, const std::string& name) {
  const auto found = std::find_if(p.edges().begin(), p.edges().end(),
                                  [&](const edge_plan& edge) { return edge.name == name; });
  BOOST_REQUIRE_MESSAGE(found != p.edges().end(), "the plan lacks edge " << name);
  return *found;
}

/// Two requests: 6 prompt rows from position 97 of which the last 2 walk the decoder, and one row
/// at position 39.
flow::step_table a_step() {
  flow::step_table table;
  table.spans = {{request_id{1}, 97, 6, 5, 101}, {request_id{2}, 39, 1, 0}};
  table.tokens.assign(7, 5);
  table.lookback.assign(6, 5);
  return table;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(splits)

BOOST_AUTO_TEST_CASE(free_cuts_share_nothing) {
  const plan p = planned(two_nodes);
  BOOST_TEST(shared_edges(p).empty());
  BOOST_TEST(role(p, "encoder").exports.empty());
  BOOST_TEST(role(p, "decoder").imports.empty());
}

BOOST_AUTO_TEST_CASE(mirror_sends_new_entries_straight_to_every_reader) {
  const plan p = planned(four_stages("mirror", "mirror"));
  const std::vector<std::string> wanted = {
      "a -> b shared_kv of layer 2", "a -> b selection of layer 2",
      "b -> c shared_kv of layer 6", "b -> c index_keys of layer 6",
      "b -> c selection of layer 6", "b -> c candidates of layer 6",
      "b -> d shared_kv of layer 6", "b -> d index_keys of layer 6",
      "c -> d selection of layer 8", "b -> d candidates of layer 6"};
  BOOST_TEST(shared_edges(p) == wanted, boost::test_tools::per_element());

  BOOST_TEST((role(p, "b").imports == model::shared_state{{2}, {}, {}, {2}, {}}));
  BOOST_TEST((role(p, "c").imports == model::shared_state{{6}, {}, {6}, {6}, {6}}));
  BOOST_TEST((role(p, "d").imports == model::shared_state{{6}, {}, {6}, {8}, {6}}));
  BOOST_TEST((role(p, "a").exports == model::shared_state{{2}, {}, {}, {2}, {}}));
  BOOST_TEST((role(p, "b").exports == model::shared_state{{6}, {}, {6}, {6}, {6}}));
  BOOST_TEST((role(p, "c").exports == model::shared_state{{}, {}, {}, {8}, {}}));
  BOOST_TEST(role(p, "d").exports.empty());

  const edge_plan& keys = edge_called(p, "b -> d index_keys of layer 6");
  BOOST_TEST(keys.layer == 6U);
  BOOST_TEST(keys.reader == 0U);
  BOOST_TEST(keys.messages_per_step() == 1U);
  BOOST_TEST(keys.crosses());
}

BOOST_AUTO_TEST_CASE(gather_asks_the_owner_once_for_each_index_group) {
  const plan p = planned(four_stages("mirror", "gather"));
  const std::vector<std::string> wanted = {
      "a -> b shared_kv of layer 2",      "a -> b selection of layer 2",
      "b -> c index_keys of layer 6",     "b -> c selection of layer 6",
      "b -> c candidates of layer 6",     "c -> b gather_request of layer 6",
      "b -> c gathered of layer 6",       "b -> d index_keys of layer 6",
      "c -> d selection of layer 8",      "b -> d candidates of layer 6",
      "d -> b gather_request of layer 6", "b -> d gathered of layer 6"};
  BOOST_TEST(shared_edges(p) == wanted, boost::test_tools::per_element());
  BOOST_TEST((role(p, "d").imports == model::shared_state{{}, {6}, {6}, {8}, {6}}));
  BOOST_TEST((role(p, "b").exports == model::shared_state{{}, {6}, {6}, {6}, {6}}));
  for (const char* name : {"d -> b gather_request of layer 6", "b -> d gathered of layer 6"}) {
    const edge_plan& edge = edge_called(p, name);
    BOOST_TEST(edge.layer == 6U);
    BOOST_TEST(edge.reader == 9U);
    BOOST_TEST(edge.groups == (layers{8, 10}), boost::test_tools::per_element());
    BOOST_TEST(edge.messages_per_step() == 2U);
    BOOST_TEST(edge.window_messages == 2U);
    BOOST_TEST(edge.window_bytes == 2 * edge.message_bytes_max);
  }
  BOOST_TEST(edge_called(p, "c -> b gather_request of layer 6").groups == (layers{6, 8}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(bytes_of_a_step_are_exact) {
  const plan p = planned(four_stages("gather", "gather"));
  const plan mirrored = planned(four_stages("mirror", "mirror"));
  const auto bytes = [&](const plan& of, const std::string& name) {
    return of.expected_bytes(edge_called(of, name).id, a_step());
  };
  const std::uint64_t spans = 2 * 24;
  // cedar-tiny: entries of 64/2 + 64/16 bytes, keys of 32/2 + 32/32, top 32, 16 blocks; a row of an
  // activation has 4 x (256 + 4) + 1 bytes. Entries end at 97, 99, 101 and 39 with ratio 2.
  BOOST_TEST(bytes(mirrored, "a -> b shared_kv of layer 2") == 4 * 36 + spans);
  BOOST_TEST(bytes(mirrored, "b -> d shared_kv of layer 6") == 7 * 36 + spans);
  BOOST_TEST(bytes(mirrored, "b -> d index_keys of layer 6") == 7 * 17 + spans);
  BOOST_TEST(bytes(mirrored, "a -> b selection of layer 2") == 7 * 128 + spans);
  BOOST_TEST(bytes(mirrored, "c -> d selection of layer 8") == 3 * 128 + spans);
  BOOST_TEST(bytes(mirrored, "b -> d candidates of layer 6") == 3 * 64 + spans);
  BOOST_TEST(bytes(mirrored, "a -> b activation") == 7 * 1041 + spans);
  BOOST_TEST(bytes(mirrored, "b -> c activation") == 3 * 1041 + spans);
  // Two groups of three rows each.
  BOOST_TEST(bytes(p, "d -> b gather_request of layer 6") == 2 * (3 * 128 + spans));
  // Every row finds its 32 entries.
  BOOST_TEST(bytes(p, "b -> d gathered of layer 6") == 2 * (3 * 32 * 36 + spans));
  // Rows 97-102 find 32 of 49 and more entries of ratio 2, the row at 39 all 20.
  BOOST_TEST(bytes(p, "b -> a gather_request of layer 2") == 7 * 128 + spans);
  BOOST_TEST(bytes(p, "a -> b gathered of layer 2") == (6 * 32 + 20) * 36 + spans);
}

/// Without its splits, and with `change`d lines.
std::vector<std::string> mistakes_without_splits(const std::string& from, const std::string& to) {
  const std::string text = with(four_stages("mirror", "mirror"), from, to);
  return mistakes(text.substr(0, text.find("splits:")));
}

BOOST_AUTO_TEST_CASE(a_missing_split_hides_no_lack_of_memory) {
  const auto all =
      mistakes_without_splits("front-cpu: {node: front}", "front-cpu: {node: front, memory: 1MiB}");
  const auto count = [&](const std::string& part) {
    return std::count_if(all.begin(), all.end(), [&](const std::string& one) {
      return one.find(part) != std::string::npos;
    });
  };
  BOOST_TEST(count("separates") == 3);  // the cuts after layers 2, 6 and 8
  BOOST_TEST(count("device 'front-cpu'") == 1);
}

BOOST_AUTO_TEST_CASE(layers_that_overlap_hide_no_other_cut) {
  const auto all = mistakes_without_splits("name: d, layers: 9-11", "name: d, layers: 8-11");
  BOOST_TEST(all.size() == 3U);  // the overlap, and the cuts after layers 2 and 6
}

BOOST_AUTO_TEST_CASE(diagnostics_and_sampling_are_counted) {
  const plan p = planned(two_nodes);
  flow::step_table table = a_step();
  table.taps = {"L0.attn.out"};
  table.sampling.resize(1);
  table.sampling[0].options.bias.resize(3);
  BOOST_TEST(p.expected_bytes(edge_called(p, "scheduler -> head step_table").id, table) ==
             flow::credit_bytes(table));
  const edge_id proposal = edge_called(p, "head -> scheduler proposal").id;
  BOOST_TEST(p.expected_bytes(proposal, table) == 2U * 20);
  table.want_logits = true;
  BOOST_TEST(p.expected_bytes(proposal, table) == 2U * (20 + 2048 * 4));
}

BOOST_AUTO_TEST_CASE(no_step_is_larger_than_the_bounds) {
  // 100 rows, 4 requests, 1000 positions.
  flow::step_table table;
  for (std::uint64_t i = 0; i < 4; ++i) table.spans.push_back({request_id{i}, 975 - 24, 25, 0});
  table.tokens.assign(100, 5);
  table.lookback.assign(12, 5);
  for (const std::string mode : {"mirror", "gather"}) {
    const plan p = planned(four_stages(mode, mode));
    for (const edge_plan& edge : p.edges()) {
      if (edge.kind == edge_kind::tap) continue;
      const std::uint64_t bytes = p.expected_bytes(edge.id, table);
      BOOST_TEST(bytes <= edge.message_bytes_max * edge.messages_per_step(), edge.name);
      // The bound is tight where nothing but rows counts.
      if (is_shared_state(edge.kind))
        BOOST_TEST(bytes == edge.message_bytes_max * edge.messages_per_step(), edge.name);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
