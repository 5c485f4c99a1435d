// Goal: a placed drafter is planned with its edges, its bytes and its memory; wrong ones are named.
// Method: the two-node file with a drafter on either node, and with one mistake at a time; bytes
// are those of real messages.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "kernels/ops/entry_format.hpp"
#include "runtime/model/compressor.hpp"
#include "runtime/model/manifest.hpp"
#include "tests/unit/topology/plan/support.hpp"
#include "topology/plan/memory.hpp"
#include "topology/plan/render.hpp"

using namespace cedar;
using namespace cedar::topology;
using namespace cedar::topology::test;

namespace {

const std::string head = "  head: {device: back-cpu}\n";

std::string drafted(const std::string& more = {}, const std::string& device = "front-cpu") {
  return with(two_nodes, head, head + "  drafter: {device: " + device + "}\n") + more;
}

std::vector<std::string> edges_of_drafter(const plan& p) {
  std::vector<std::string> names;
  for (const edge_plan& edge : p.edges())
    if (p[edge.producer].name == "drafter" || p[edge.consumer].name == "drafter")
      names.push_back(edge.name + (edge.crosses() ? " *" : ""));
  return names;
}

const edge_plan& edge_of(const plan& p, edge_kind kind) {
  return *std::ranges::find(p.edges(), kind, &edge_plan::kind);
}

/// Requests with 900, 1 and 7 rows, of which 900, 1 and 0 walk the decoder.
flow::step_table table_of_three() {
  flow::step_table table;
  table.spans = {
      {request_id{1}, 0, 900, 899}, {request_id{2}, 50, 1, 0}, {request_id{9}, 1, 7, 7, 99}};
  table.tokens.assign(908, 7);
  return table;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(a_planned_drafter)

BOOST_AUTO_TEST_CASE(hears_of_every_step_and_takes_taps_of_the_target_layers) {
  const plan p = planned(drafted());
  const auto& role = std::get<drafter_role>(p[unit_called(p, "drafter")].role);
  BOOST_TEST(role.target_layers == (std::vector<std::uint32_t>{9, 10, 11}),
             boost::test_tools::per_element());
  BOOST_TEST(p.units().back().name == "drafter");
  BOOST_TEST(
      std::get<stage_role>(p[unit_called(p, "decoder")].role).tapped_layers == role.target_layers,
      boost::test_tools::per_element());
  BOOST_TEST(std::get<stage_role>(p[unit_called(p, "encoder")].role).tapped_layers.empty());
  BOOST_TEST(
      edges_of_drafter(p) ==
          (std::vector<std::string>{
              "scheduler -> drafter step_table", "decoder -> drafter draft_taps of layer 9 *",
              "decoder -> drafter draft_taps of layer 10 *",
              "decoder -> drafter draft_taps of layer 11 *", "scheduler -> drafter verdict",
              "scheduler -> drafter draft_orders", "drafter -> scheduler draft_answers"}),
      boost::test_tools::per_element());
  for (const edge_plan& edge : p.edges())
    if (p[edge.consumer].name == "drafter") {
      BOOST_TEST(edge.window_messages == 3U);
      BOOST_TEST(edge.queue_messages_max == 6U);
    }
}

BOOST_AUTO_TEST_CASE(takes_taps_from_each_stage_that_holds_a_target_layer) {
  const plan p = planned(with(drafted("splits: [{owner: 6, mode: mirror}]\n"),
                              "{name: decoder, layers: 6-11, device: back-cpu}",
                              "{name: decoder, layers: 6-9, device: back-cpu}\n"
                              "    - {name: last, layers: 10-11, device: front-cpu}"));
  const auto names = edges_of_drafter(p);
  for (const char* wanted :
       {"decoder -> drafter draft_taps of layer 9 *", "last -> drafter draft_taps of layer 10",
        "last -> drafter draft_taps of layer 11"})
    BOOST_TEST(std::ranges::count(names, wanted) == 1, wanted);
}

BOOST_AUTO_TEST_CASE(drafts_as_the_file_says) {
  BOOST_TEST(planned(two_nodes).limits().draft_tokens == 0U);
  BOOST_TEST(planned(drafted()).limits().draft_tokens == 5U);
  BOOST_TEST(planned(drafted()).limits().draft_policy);
  BOOST_TEST(planned(drafted("draft: fixed:2\n")).limits().draft_tokens == 2U);
  BOOST_TEST(!planned(drafted("draft: fixed:2\n")).limits().draft_policy);
  BOOST_TEST(planned(drafted("draft: auto\n")).limits().draft_tokens == 5U);
  BOOST_TEST(planned(drafted("draft: auto\n")).limits().draft_policy);
  BOOST_TEST(planned(two_nodes + "draft: off\n").limits().draft_tokens == 0U);
}

BOOST_AUTO_TEST_CASE(leaves_nothing_behind_where_it_is_off) {
  const plan plain = planned(two_nodes);
  const plan off = planned(drafted("draft: off\n"));
  BOOST_TEST(off.units().size() == plain.units().size());
  BOOST_REQUIRE(off.edges().size() == plain.edges().size());
  for (std::size_t i = 0; i < plain.edges().size(); ++i)
    BOOST_TEST(off.edges()[i].name == plain.edges()[i].name);
  for (const unit_plan& unit : off.units())
    if (const auto* stage = std::get_if<stage_role>(&unit.role))
      BOOST_TEST(stage->tapped_layers.empty());
  BOOST_TEST(render_plan(off) == render_plan(plain));
}

BOOST_AUTO_TEST_CASE(costs_the_bytes_of_its_messages) {
  const plan p = planned(drafted("draft: fixed:3\n"));
  const model::model_config& c = p.model();
  const flow::step_table table = table_of_three();
  flow::row_block taps;
  taps.spans = table.spans;
  // A window and what a verdict may take back; one row; none.
  const std::size_t rows = c.window + c.dspark.block_size + 1 + 1;
  taps.payload = flow::freeze(kernels::buffer(rows * c.width * 2));
  BOOST_TEST(p.expected_bytes(edge_of(p, edge_kind::draft_taps).id, table) ==
             flow::credit_bytes(taps));

  // A row of each request, which bring a window, or what there is of it.
  flow::step_table begins = table;
  std::size_t tapped = 0;
  for (flow::row_span& span : begins.spans) {
    span.taps = flow::tap_use::window;
    const std::uint32_t end = span.first_position + span.rows_count;
    tapped += std::min(end - std::min(span.decoder_begin, end), c.window);
  }
  taps.payload = flow::freeze(kernels::buffer(tapped * c.width * 2));
  BOOST_TEST(p.expected_bytes(edge_of(p, edge_kind::draft_taps).id, begins) ==
             flow::credit_bytes(taps));
  for (flow::row_span& span : begins.spans) span.taps = flow::tap_use::none;
  BOOST_TEST(p.expected_bytes(edge_of(p, edge_kind::draft_taps).id, begins) == 0U);
  // The largest: all requests of the limits begin to be followed, or have as many rows.
  BOOST_TEST(edge_of(p, edge_kind::draft_taps).message_bytes_max >=
             4 * ((c.window + c.dspark.block_size + 1) * c.width * 2 + 24));

  flow::draft_orders orders;
  orders.orders.resize(2);
  flow::draft_answers answers;
  answers.drafts = {{request_id{1}, 5, {1, 2, 3}, {0.5F, 0.5F, 0.5F}}, {request_id{2}, 5, {}, {}}};
  const edge_plan& there = edge_of(p, edge_kind::draft_orders);
  const edge_plan& back = edge_of(p, edge_kind::draft_answers);
  BOOST_TEST(p.expected_bytes(there.id, table, {2, 3}) == flow::credit_bytes(orders));
  BOOST_TEST(p.expected_bytes(back.id, table, {2, 3}) == flow::credit_bytes(answers));
  // The largest: every request of the limits gets a whole draft.
  orders.orders.resize(4);
  answers.drafts.assign(4, answers.drafts.front());
  BOOST_TEST(there.message_bytes_max == flow::credit_bytes(orders));
  BOOST_TEST(back.message_bytes_max == flow::credit_bytes(answers));
}

BOOST_AUTO_TEST_CASE(needs_memory_for_its_blocks_its_replicas_and_its_windows) {
  const plan p = planned(drafted());
  const model::model_config& c = p.model();
  const memory_need need = memory_of_units(p, largest_load(p))[unit_called(p, "drafter").value];
  std::uint64_t weights = 0;
  for (const model::expected_tensor& tensor : model::manifest(c))
    if (model::in_drafter(tensor)) weights += tensor.bytes();
  BOOST_TEST(need.weights == weights);
  BOOST_TEST(need.weights > std::uint64_t{2} * c.vocabulary * c.width * 2);
  const std::uint64_t rows = 4ULL * (c.window + c.dspark.block_size + 1);
  const std::uint64_t taps = rows * c.width * 2;
  BOOST_TEST(need.kv ==
             rows * c.dspark.blocks * kernels::entry_bytes(model::window_entry_format, c.head_dim) +
                 c.dspark.target_layers.size() * taps);
  // The stage keeps what the drafter may ask for later.
  const auto kv_of_decoder = [](const plan& of) {
    return memory_of_units(of, largest_load(of))[unit_called(of, "decoder").value].kv;
  };
  BOOST_TEST(kv_of_decoder(p) == kv_of_decoder(planned(drafted("draft: off\n"))) +
                                     c.dspark.target_layers.size() * taps);
  BOOST_TEST(need.working > 0U);
}

BOOST_AUTO_TEST_CASE(is_shown) {
  const plan p = planned(drafted("draft: fixed:2\n"));
  const std::string text = render_plan(p);
  for (const char* part : {"taps of layers 9, 10, 11", "256 a tapped row + 24 a request",
                           "20 an order", "14 an order + 8 a drafted token",
                           "drafts     2 tokens for each step of an answer at most"})
    BOOST_TEST(text.find(part) != std::string::npos, part);
  const auto root = nlohmann::json::parse(render_json(p, largest_basis(p)));
  BOOST_TEST(root.at("limits").at("draft_tokens") == 2);
  BOOST_TEST((root.at("units").back().at("taps_of_layers") == nlohmann::json{9, 10, 11}));
  const std::string drawing = render_svg(p, largest_basis(p));
  for (const char* part : {"draft_taps of layer 9", "draft_orders", "draft_answers"})
    BOOST_TEST(drawing.find(part) != std::string::npos, part);
}

BOOST_AUTO_TEST_CASE(is_refused_with_a_way_out) {
  const auto expect = [](const std::string& text, const std::string& wanted) {
    BOOST_TEST(mistakes(text) == std::vector<std::string>{wanted},
               boost::test_tools::per_element());
  };
  expect(two_nodes + "draft: fixed:3\n",
         "19:8 'draft' is 'fixed:3', but no drafter is placed | add drafter: {device: DEVICE} to "
         "'units', or write draft: off");
  expect(two_nodes + "draft: auto\n",
         "19:8 'draft' is 'auto', but no drafter is placed | add drafter: {device: DEVICE} to "
         "'units', or write draft: off");
  expect(drafted("draft: fixed:6\n"),
         "20:8 'draft' is 'fixed:6', but the model's drafter proposes 5 tokens at once | write at "
         "most fixed:5");
  expect(drafted("draft: some\n"),
         "20:8 'draft' is 'some' | write off, auto, or fixed:K with K of 1 and "
         "more");
  expect(drafted({}, "side-cpu"),
         "18:21 there is no device 'side-cpu' | known are: front-cpu, "
         "back-cpu");
  expect(with(two_nodes, "name: encoder", "name: drafter"),
         "15:14 a stage cannot be called 'drafter': that is the name of another unit");
}

BOOST_AUTO_TEST_CASE(needs_a_model_that_has_one) {
  model::model_config plain = configuration("cedar-tiny");
  plain.dspark = {};
  const auto made = make_plan(read_text(drafted(), "t.yaml"), plain);
  BOOST_REQUIRE(!made);
  BOOST_TEST(made.error().front().message ==
             "the model has no draft blocks for 'units.drafter' to run");
  const auto asked = make_plan(read_text(two_nodes + "draft: fixed:1\n", "t.yaml"), plain);
  BOOST_REQUIRE(!asked);
  BOOST_TEST(asked.error().front().hint == "write draft: off: the model has no draft blocks");
}

BOOST_AUTO_TEST_SUITE_END()
