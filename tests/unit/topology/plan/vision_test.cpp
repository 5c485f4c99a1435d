// Goal: a placed vision tower is planned with its edges, its bytes and its memory; a wrong one is
// named. Method: the two-node file with vision on either node, for the configuration of
// tiny-vision; bytes are those of real messages.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "runtime/model/image_tokens.hpp"
#include "runtime/model/manifest.hpp"
#include "tests/unit/topology/plan/support.hpp"
#include "topology/plan/link_costs.hpp"
#include "topology/plan/render.hpp"

using namespace cedar;
using namespace cedar::topology;
using namespace cedar::topology::test;

namespace {

const std::string reader = "../../tests/data/golden/tiny-vision";
const std::string embedding = "  embedding: {device: front-cpu}\n";

std::string with_vision(const std::string& device = "back-cpu") {
  return with(two_nodes, embedding, "  vision: {device: " + device + "}\n" + embedding);
}

std::vector<std::string> edges_of_vision(const plan& p) {
  std::vector<std::string> names;
  for (const edge_plan& edge : p.edges())
    if (p[edge.producer].name == "vision" || p[edge.consumer].name == "vision")
      names.push_back(edge.name + (edge.crosses() ? " *" : ""));
  return names;
}

const edge_plan& edge_of(const plan& p, edge_kind kind) {
  return *std::ranges::find(p.edges(), kind, &edge_plan::kind);
}

/// Two requests; the first has `images` rows of images.
flow::step_table table_with(const plan& p, std::size_t images) {
  flow::step_table table;
  table.spans = {{request_id{1}, 0, 30, 30}, {request_id{2}, 50, 1, 0}};
  table.tokens.assign(31, 7);
  std::fill_n(table.tokens.begin(), images, model::image_token_of(p.model()));
  return table;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(a_planned_vision)

BOOST_AUTO_TEST_CASE(hears_of_every_step_and_feeds_the_embedding) {
  const plan p = planned(with_vision(), reader);
  BOOST_TEST(p.reads_images());
  BOOST_TEST(!planned(two_nodes, reader).reads_images());
  BOOST_TEST(p.units().at(1).name == "vision");
  BOOST_TEST(edges_of_vision(p) ==
                 (std::vector<std::string>{
                     "scheduler -> vision step_table *", "scheduler -> vision image *",
                     "scheduler -> vision verdict *", "vision -> embedding image_rows *"}),
             boost::test_tools::per_element());
  for (const edge_kind kind : {edge_kind::step_table, edge_kind::verdict})
    for (const edge_plan& edge : p.edges())
      if (edge.kind == kind && p[edge.consumer].name == "vision") {
        BOOST_TEST(edge.window_messages == 3U);
        BOOST_TEST(edge.queue_messages_max == 6U);
      }
}

BOOST_AUTO_TEST_CASE(costs_the_bytes_of_its_messages) {
  const plan p = planned(with_vision(), reader);
  const model::model_config& c = p.model();
  const edge_plan& rows = edge_of(p, edge_kind::image_rows);
  const flow::step_table table = table_with(p, 17);
  flow::row_block block;
  block.spans = table.spans;
  block.payload = flow::freeze(kernels::buffer(std::size_t{17} * c.width * 2));
  BOOST_TEST(p.expected_bytes(rows.id, table) == flow::credit_bytes(block));
  BOOST_TEST(p.expected_bytes(rows.id, table_with(p, 0)) == 0U);
  BOOST_TEST(rows.message_bytes_max == 100ULL * c.width * 2 + 4 * 24);
}

BOOST_AUTO_TEST_CASE(bounds_images_by_the_model_and_the_context) {
  const auto largest = [](const std::string& text) {
    const plan p = planned(text, reader);
    const edge_plan& edge = edge_of(p, edge_kind::image);
    BOOST_TEST(edge.window_bytes == 2 * edge.message_bytes_max);
    BOOST_TEST(edge.window_messages == 16U);
    BOOST_TEST(edge.queue_messages_max == 100U);
    return std::pair(edge.message_bytes_max, edge.step_bytes_max);
  };
  const std::uint64_t cell = std::uint64_t{3} * 3 * 14 * 3 * 14;
  // 64 positions: 61 cells in a row, a newline, two delimiters.
  BOOST_TEST((largest(with_vision()) == std::pair(61 * cell, (100 + 4 * 61) * cell)));
  BOOST_TEST((largest(with(with_vision(), "context: 1000", "context: 20")) ==
              std::pair(17 * cell, (100 + 4 * 17) * cell)));
}

BOOST_AUTO_TEST_CASE(needs_memory_for_its_tower_and_the_images_of_steps_in_flight) {
  const plan p = planned(with_vision(), reader);
  const model::model_config& c = p.model();
  const std::size_t vision = unit_called(p, "vision").value;
  const memory_need need = memory_of_units(p, largest_load(p))[vision];
  std::uint64_t weights = 0;
  for (const model::expected_tensor& tensor : model::manifest(c))
    if (tensor.part == model::component::vision) weights += tensor.bytes();
  BOOST_TEST(need.weights == weights);
  BOOST_TEST(weights > 0U);
  BOOST_TEST(need.kv == (3ULL * 100 + 2 * 4 * 64) * c.width * 2);
  BOOST_TEST(memory_of_units(p, {2, 50})[vision].kv == 2ULL * 50 * c.width * 2);
  BOOST_TEST(need.working > 61ULL * 9 * c.vision.width * 2);
  // Nobody else needs more than for the messages.
  const plan plain = planned(two_nodes, reader);
  const auto with = memory_of_units(p, largest_load(p));
  const auto without = memory_of_units(plain, largest_load(plain));
  for (const unit_plan& unit : plain.units())
    BOOST_TEST(with[unit_called(p, unit.name).value].weights == without[unit.id.value].weights);
}

BOOST_AUTO_TEST_CASE(is_shown) {
  const plan p = planned(with_vision(), reader);
  const std::string text = render_plan(p);
  for (const char* part : {"scheduler -> vision image ", "5,292 a cell of an image",
                           "vision -> embedding image_rows", "256 an image row + 24 a request"})
    BOOST_TEST(text.find(part) != std::string::npos, part);
  const auto root = nlohmann::json::parse(render_json(p, largest_basis(p)));
  BOOST_TEST(root.at("units").at(1).at("name") == "vision");
  const std::string drawing = render_svg(p, largest_basis(p));
  for (const char* part : {"image_rows", "vision"})
    BOOST_TEST(drawing.find(part) != std::string::npos, part);
}

BOOST_AUTO_TEST_CASE(makes_no_decode_step_longer) {
  const std::string links = "links: [{between: [front, back], latency_ms: 10}]\n";
  const plan p = planned(with_vision() + links, reader);
  const plan plain = planned(two_nodes + links, reader);
  for (const step_kind step : {step_kind::decode, step_kind::full})
    BOOST_TEST((longest_link_path(p, step, largest_basis(p)).time ==
                longest_link_path(plain, step, largest_basis(plain)).time));
  BOOST_TEST(cost_of(p, edge_of(p, edge_kind::image_rows).id, largest_basis(p)).decode_step == 0U);
  BOOST_TEST(cost_of(p, edge_of(p, edge_kind::image).id, largest_basis(p)).decode_step == 0U);
}

BOOST_AUTO_TEST_CASE(is_shipped_away_from_the_embedding) {
  const auto document =
      read_document(CEDAR_SOURCE_DIR "/configs/topologies/images/two-process.yaml");
  BOOST_REQUIRE_MESSAGE(document, (document ? "" : to_string(document.error())));
  const auto config = model::parse_config(document->resolve(document->model_path.value));
  BOOST_REQUIRE_MESSAGE(config, (config ? "" : config.error().message));
  const auto made = make_plan(*document, *config);
  BOOST_REQUIRE_MESSAGE(made, (made ? "" : to_string(made.error())));
  BOOST_TEST(edge_of(*made, edge_kind::image).crosses());
  BOOST_TEST(edge_of(*made, edge_kind::image_rows).crosses());
}

BOOST_AUTO_TEST_CASE(is_refused_with_a_way_out) {
  BOOST_TEST(mistakes(with_vision()) ==
                 std::vector<std::string>{
                     "12:11 the model has no vision tower for 'units.vision' to run | remove it"},
             boost::test_tools::per_element());
  BOOST_TEST(mistakes(with_vision("side-cpu"), reader) ==
                 std::vector<std::string>{"12:20 there is no device 'side-cpu' | known are: "
                                          "front-cpu, back-cpu"},
             boost::test_tools::per_element());
  BOOST_TEST(mistakes(with(two_nodes, "name: encoder", "name: vision")) ==
                 std::vector<std::string>{
                     "15:14 a stage cannot be called 'vision': that is the name of another unit"},
             boost::test_tools::per_element());
  BOOST_TEST(mistakes(with(with_vision(), "context: 1000", "context: 3"), reader) ==
                 std::vector<std::string>{"19:52 'context' holds no image, but 'units.vision' is "
                                          "placed | write at least 4, or remove 'units.vision'"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
