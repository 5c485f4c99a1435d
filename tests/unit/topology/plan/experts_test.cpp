// Goal: slices of experts get the edges, bytes, weights and proof that they need, and every mistake
// about them is named at its place. Method: cedar-tiny (8 experts, 2 a row, width 128) with slices
// beside its two stages; edges and bytes are worked out by hand.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>

#include "runtime/model/manifest.hpp"
#include "tests/unit/topology/plan/support.hpp"
#include "topology/plan/link_costs.hpp"
#include "topology/plan/render.hpp"
#include "topology/plan/tensor_placement.hpp"

using namespace cedar;
using namespace cedar::topology;
using namespace cedar::topology::test;
using namespace std::chrono_literals;

namespace {

const std::string mid = "{name: mid, layers: 4-7, experts: 0-2, device: one-cpu}";
const std::string rest = "{name: rest, layers: 6-11, experts: 3-7, device: two-cpu}";

/// The two-node file with these slices; devices of two more nodes.
std::string with_slices(const std::vector<std::string>& slices) {
  std::string list = "  experts:\n";
  for (const std::string& slice : slices) list += "    - " + slice + "\n";
  std::string text = with(two_nodes, "  head:", list + "  head:");
  text = with(text, "  back: {address: 127.0.0.1}\n",
              "  back: {address: 127.0.0.1}\n  one: {}\n  two: {}\n");
  return with(text, "  back-cpu: {node: back}\n",
              "  back-cpu: {node: back}\n  one-cpu: {node: one}\n  two-cpu: {node: two}\n");
}

const edge_plan& edge_named(const plan& p, const std::string& name) {
  const auto found = std::ranges::find(p.edges(), name, &edge_plan::name);
  BOOST_REQUIRE_MESSAGE(found != p.edges().end(), "the plan lacks edge " << name);
  return *found;
}

std::vector<std::string> expert_edges(const plan& p) {
  std::vector<std::string> out;
  for (const edge_plan& edge : p.edges())
    if (edge.follows_routes()) out.push_back(edge.name);
  return out;
}

const auto by_element = boost::test_tools::per_element();
using layers = std::vector<std::uint32_t>;

// Ids and weights of 2 experts, 128 codes, 4 scales.
constexpr std::uint64_t row = 2 * 8 + 128 + 4;
constexpr std::uint64_t output = 2 * 128;
constexpr std::uint64_t span = 24;

/// The mistakes of a file with these slices, without their lines.
std::vector<std::string> mistakes_of(const std::vector<std::string>& slices) {
  std::vector<std::string> out = mistakes(with_slices(slices));
  for (std::string& one : out) one = one.substr(one.find(':') + 1);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(slices_of_experts)

BOOST_AUTO_TEST_CASE(are_asked_by_each_stage_of_their_layers) {
  const plan p = planned(with_slices({mid, rest}));
  BOOST_TEST(
      expert_edges(p) == (std::vector<std::string>{
                             "encoder -> mid expert_rows", "mid -> encoder expert_outputs",
                             "decoder -> mid expert_rows", "mid -> decoder expert_outputs",
                             "decoder -> rest expert_rows", "rest -> decoder expert_outputs"}),
      by_element);
  const edge_plan& asks = edge_named(p, "decoder -> rest expert_rows");
  const edge_plan& answers = edge_named(p, "rest -> decoder expert_outputs");
  for (const edge_plan* edge : {&asks, &answers}) {
    BOOST_TEST(edge->slice == 1U);
    BOOST_TEST(edge->reader == 6U);
    BOOST_TEST(edge->layer == 0U);
    BOOST_TEST(edge->groups == (layers{6, 7, 8, 9, 10, 11}), by_element);
    BOOST_TEST(edge->window_messages == 1U);
    BOOST_TEST(edge->window_bytes == edge->message_bytes_max);
    BOOST_TEST(edge->crosses());
  }
  BOOST_TEST(edge_named(p, "encoder -> mid expert_rows").groups == (layers{4, 5}), by_element);
  // 100 rows of 4 requests, each with two experts of the slice.
  BOOST_TEST(asks.message_bytes_max == 100 * row + 4 * span);
  BOOST_TEST(answers.message_bytes_max == 100 * 2 * output + 4 * span);
  BOOST_TEST(answers.step_bytes_max == 6 * answers.message_bytes_max);
}

BOOST_AUTO_TEST_CASE(hear_of_nothing_but_requests) {
  const plan p = planned(with_slices({mid, rest}));
  for (const char* name : {"mid", "rest"})
    for (const edge_id edge : p.edges_into(unit_called(p, name)))
      BOOST_TEST((p[edge].kind == edge_kind::expert_rows));
}

BOOST_AUTO_TEST_CASE(have_the_bytes_of_what_routers_chose) {
  const plan p = planned(with_slices({mid, rest}));
  flow::step_table table;
  table.spans = {{request_id{1}, 5, 3, 3}, {request_id{2}, 9, 1, 0}};
  table.tokens.assign(4, 5);
  const step_routes routes{{4, {{0, 3}, {1, 2}, {7, 6}, {2, 5}}},
                           {5, {{3, 4}, {5, 6}, {7, 3}, {4, 5}}},
                           {6, {{0, 7}, {3, 4}, {2, 1}, {6, 5}}}};
  const auto bytes = [&](const char* name) {
    return p.expected_bytes(edge_named(p, name).id, table, {}, routes);
  };
  // Layer 4: rows 0, 1 and 3 with four choices; nobody of layer 5.
  BOOST_TEST(bytes("encoder -> mid expert_rows") == 3 * row + 2 * span);
  BOOST_TEST(bytes("mid -> encoder expert_outputs") == 4 * output + 2 * span);
  BOOST_TEST(bytes("decoder -> mid expert_rows") == 2 * row + 2 * span);
  BOOST_TEST(bytes("mid -> decoder expert_outputs") == 3 * output + 2 * span);
  BOOST_TEST(bytes("decoder -> rest expert_rows") == 3 * row + 2 * span);
  BOOST_TEST(bytes("rest -> decoder expert_outputs") == 5 * output + 2 * span);
  table.spans[0].stored = 8;
  BOOST_TEST(bytes("decoder -> rest expert_rows") == 3 * row + 2 * span + 8);
}

BOOST_AUTO_TEST_CASE(cost_what_even_choices_cost) {
  const plan p = planned(with_slices({mid, rest}));
  const cost_basis one_request{{1, 100}, 10};
  const edge_cost asks = cost_of(p, edge_named(p, "decoder -> rest expert_rows").id, one_request);
  // A row chooses none of five of eight experts with 3/8 * 2/7.
  const double some = 1 - 3.0 / 8 * 2 / 7;
  BOOST_TEST(asks.decode_row == 6 * some * row, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(asks.decode_step == static_cast<std::uint64_t>(6 * some * (row + span) + 0.5));
  BOOST_TEST(asks.per_second == 10.0 * static_cast<double>(asks.decode_step));
  const edge_cost answers =
      cost_of(p, edge_named(p, "rest -> decoder expert_outputs").id, one_request);
  BOOST_TEST(answers.decode_row == 6 * 2 * 5.0 / 8 * output, boost::test_tools::tolerance(1e-12));
  // All experts: no chance is left.
  const plan all = planned(with_slices(
      {"{name: all, layers: 11, device: one-cpu}", "{name: other, layers: 0, device: two-cpu}"}));
  BOOST_TEST(
      cost_of(all, edge_named(all, "decoder -> all expert_rows").id, one_request).decode_step ==
      row + span);
}

BOOST_AUTO_TEST_CASE(take_their_layers_there_and_back_on_links) {
  // Layers 8-11 ask both at once: the far one counts. Layer 7 asks the near one alone.
  const std::string near = "{name: near, layers: 7-11, experts: 0-2, device: one-cpu}";
  const std::string far = "{name: far, layers: 8-11, experts: 3-7, device: two-cpu}";
  const plan p = planned(with_slices({near, far}) +
                         "links:\n  - {between: [back, one], latency_ms: 1}\n"
                         "  - {between: [back, two], latency_ms: 10}\n");
  const link_path path = longest_link_path(p, step_kind::decode, {{1, 100}, 0});
  BOOST_TEST((path.time == 2ms + 4 * 20ms));
  std::vector<std::string> names;
  for (const edge_id edge : path.edges) names.push_back(p[edge].name);
  BOOST_TEST(names == (std::vector<std::string>{
                          "decoder -> near expert_rows", "near -> decoder expert_outputs",
                          "decoder -> far expert_rows", "far -> decoder expert_outputs"}),
             by_element);
}

BOOST_AUTO_TEST_CASE(hold_each_expert_of_the_model_once_with_the_stages) {
  const plan p = planned(with_slices({mid, rest}));
  std::map<std::string, std::size_t> counts;
  for (const model::expected_tensor& tensor : model::manifest(p.model())) {
    if (tensor.part != model::component::experts) continue;
    const auto readers = readers_of(p, tensor);
    BOOST_REQUIRE_EQUAL(readers.size(), 1U);
    ++counts[p[readers[0]].name];
  }
  BOOST_TEST(counts["mid"] == 6U * 4 * 3);
  BOOST_TEST(counts["rest"] == 6U * 6 * 5);
  BOOST_TEST(counts["encoder"] == 6U * (6 * 8 - 2 * 3));
  BOOST_TEST(counts["decoder"] == 6U * (6 * 8 - 2 * 3 - 6 * 5));
}

BOOST_AUTO_TEST_CASE(are_rendered) {
  const plan p = planned(with_slices({mid, rest}));
  const std::string text = render_plan(p);
  BOOST_TEST(text.find("experts 3-7 of layers 6-11") != std::string::npos);
  BOOST_TEST(text.find("148 a routed row + 24 a request, for each of 6 layers") !=
             std::string::npos);
  const std::string json = render_json(p, largest_basis(p));
  BOOST_TEST(json.find("\"routed_row\": 148") != std::string::npos);
  BOOST_TEST(render_svg(p, largest_basis(p)).find("experts 0-2 of layers 4-7") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(that_the_model_lacks_are_mistakes) {
  BOOST_TEST(mistakes_of({"{name: a, layers: 11-14, device: one-cpu}",
                          "{name: b, layers: 0, experts: 6-9, device: two-cpu}"}) ==
                 (std::vector<std::string>{
                     "25 layers 12-14 of experts 'a' do not exist | the model has layers 0-11",
                     "37 experts 8-9 of experts 'b' do not exist | the model has experts 0-7"}),
             by_element);
  BOOST_TEST(mistakes_of({"{name: a, layers: 12, device: one-cpu}",
                          "{name: b, layers: 0, experts: 8, device: two-cpu}"}) ==
                 (std::vector<std::string>{
                     "25 layer 12 of experts 'a' does not exist | the model has layers 0-11",
                     "37 expert 8 of experts 'b' does not exist | the model has experts 0-7"}),
             by_element);
}

BOOST_AUTO_TEST_CASE(that_two_hold_are_mistakes) {
  const std::string hint =
      " | an expert of a layer may be on one of them only; those on none stay with their stage";
  BOOST_TEST(mistakes_of({"{name: a, layers: 0-6, experts: 0-4, device: one-cpu}",
                          "{name: b, layers: 5-9, experts: 3-7, device: two-cpu}"}) ==
                 std::vector<std::string>{
                     "39 experts 3-4 of layers 5-6 of experts 'b' are on experts 'a' too" + hint},
             by_element);
  // Without ids, a slice has all.
  BOOST_TEST(mistakes_of({"{name: a, layers: 6, experts: 2, device: one-cpu}",
                          "{name: b, layers: 6-9, device: two-cpu}"}) ==
                 std::vector<std::string>{
                     "14 expert 2 of layer 6 of experts 'b' is on experts 'a' too" + hint},
             by_element);
}

BOOST_AUTO_TEST_CASE(need_names_and_devices_of_their_own) {
  BOOST_TEST(mistakes_of({"{name: decoder, layers: 0, device: one-cpu}",
                          "{name: head, layers: 1, device: two-cpux}"}) ==
                 (std::vector<std::string>{
                     "14 two stages or slices of experts are called 'decoder' | messages and "
                     "traces name stages or slices of experts: give each its own name",
                     "14 a slice of experts cannot be called 'head': that is the name of another "
                     "unit",
                     "39 there is no device 'two-cpux' | did you mean 'two-cpu'?"}),
             by_element);
}

BOOST_AUTO_TEST_SUITE_END()
