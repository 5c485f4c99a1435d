// Goal: a sound topology becomes a plan with every unit at its place and every edge with its
// bounds. Method: a two-node topology of cedar-tiny; expected edges and numbers are worked out by
// hand.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <type_traits>

#include "kernels/base/check.hpp"
#include "tests/unit/topology/plan/support.hpp"

using namespace cedar;
using namespace cedar::topology;
using namespace cedar::topology::test;

static_assert(!std::is_default_constructible_v<plan>, "only make_plan() makes plans");

namespace {

const edge_plan& edge_called(const plan& p, const std::string& name) {
  const auto found = std::find_if(p.edges().begin(), p.edges().end(),
                                  [&](const edge_plan& edge) { return edge.name == name; });
  BOOST_REQUIRE_MESSAGE(found != p.edges().end(), "the plan lacks edge " << name);
  return *found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(make_plan_of_a_sound_topology)

BOOST_AUTO_TEST_CASE(places_units_on_nodes_in_the_order_of_rows) {
  const plan p = planned(two_nodes);
  std::vector<std::string> names;
  for (const unit_plan& unit : p.units()) {
    BOOST_TEST(p[unit.id].name == unit.name);
    names.push_back(unit.name + "@" + p[unit.node].name +
                    (unit.device ? "/" + p[*unit.device].name : ""));
  }
  const std::vector<std::string> wanted = {"scheduler@front",        "embedding@front/front-cpu",
                                           "engram@front/front-cpu", "encoder@front/front-cpu",
                                           "decoder@back/back-cpu",  "head@back/back-cpu"};
  BOOST_TEST(names == wanted, boost::test_tools::per_element());
  BOOST_REQUIRE(p.nodes().size() == 2U);
  BOOST_TEST(p.nodes()[0].units.size() == 4U);
  BOOST_TEST(p.nodes()[1].units.size() == 2U);
  BOOST_TEST(p.nodes()[1].model_path == "dir/model");
  BOOST_TEST(p.client().name == "front");
  BOOST_TEST(p.find_node("back")->id.value == 1U);
  BOOST_TEST(!p.find_node("side"));
  BOOST_TEST((p[device_id{0}].kind == device_kind::cpu));
}

BOOST_AUTO_TEST_CASE(gives_each_unit_its_part_of_the_model) {
  const plan p = planned(two_nodes);
  const auto& engram = std::get<engram_role>(p[unit_called(p, "engram")].role);
  BOOST_TEST((engram.shards == std::vector<model::engram_shard>{{0, 1, 0, 9210}, {1, 4, 0, 9456}}));
  BOOST_TEST(!engram.in_parts);
  const auto& encoder = std::get<stage_role>(p[unit_called(p, "encoder")].role);
  BOOST_TEST((encoder.layers == layer_range{0, 5}));
  BOOST_TEST(encoder.engram_layers.size() == 2U);
  BOOST_TEST(encoder.first);
  BOOST_TEST(!encoder.last);
  const auto& decoder = std::get<stage_role>(p[unit_called(p, "decoder")].role);
  BOOST_TEST((decoder.layers == layer_range{6, 11}));
  BOOST_TEST(decoder.engram_layers.empty());
  BOOST_TEST(!decoder.first);
  BOOST_TEST(decoder.last);
}

BOOST_AUTO_TEST_CASE(connects_the_units) {
  const plan p = planned(two_nodes);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < p.edges().size(); ++i) {
    BOOST_TEST(p.edges()[i].id.value == i);
    names.push_back(p.edges()[i].name + (p.edges()[i].crosses() ? " *" : ""));
  }
  const std::vector<std::string> wanted = {"scheduler -> embedding step_table",
                                           "scheduler -> engram step_table",
                                           "scheduler -> encoder step_table",
                                           "scheduler -> decoder step_table *",
                                           "scheduler -> head step_table *",
                                           "embedding -> encoder embedded",
                                           "engram -> encoder engram_rows of layer 1",
                                           "engram -> encoder engram_rows of layer 4",
                                           "encoder -> decoder activation *",
                                           "decoder -> head head_input",
                                           "head -> scheduler proposal *",
                                           "scheduler -> encoder verdict",
                                           "scheduler -> decoder verdict *",
                                           "scheduler -> head verdict *",
                                           "encoder -> scheduler tap",
                                           "decoder -> scheduler tap *",
                                           "head -> scheduler tap *"};
  BOOST_TEST(names == wanted, boost::test_tools::per_element());
  BOOST_TEST(edge_called(p, "engram -> encoder engram_rows of layer 4").layer == 4U);

  const auto into = p.edges_into(unit_called(p, "encoder"));
  BOOST_REQUIRE(into.size() == 5U);
  BOOST_TEST(p[into[0]].name == "scheduler -> encoder step_table");
  BOOST_TEST(p[into[4]].name == "scheduler -> encoder verdict");
  const auto out = p.edges_out_of(unit_called(p, "encoder"));
  BOOST_REQUIRE(out.size() == 2U);
  BOOST_TEST(p[out[0]].name == "encoder -> decoder activation");
}

BOOST_AUTO_TEST_CASE(grants_each_edge_the_steps_in_flight_at_their_largest) {
  // 100 rows, 4 requests, 3 steps; cedar-tiny: width 128, 4 streams, vocabulary 2048, look-back 3.
  const plan p = planned(two_nodes);
  const auto expect = [&](const std::string& name, std::uint64_t bytes) {
    const edge_plan& edge = edge_called(p, name);
    BOOST_TEST(edge.message_bytes_max == bytes, name << " " << edge.message_bytes_max);
    BOOST_TEST(edge.window_messages == 3U);
    BOOST_TEST(edge.window_bytes == 3 * bytes);
    BOOST_TEST(edge.queue_messages_max == 3U);
  };
  expect("scheduler -> decoder step_table",
         100 * 4 + 4 * (24 + 3 * 4) + 2048 * (2 + 64) + 4 * (60 + 1024 * 8));
  expect("embedding -> encoder embedded", 100 * 257 + 4 * 24);
  expect("engram -> encoder engram_rows of layer 1", 100 * 6 * 33 + 4 * 24);
  expect("encoder -> decoder activation", 100 * 1041 + 4 * 24);
  expect("decoder -> head head_input", 100 * 256 + 4 * 24);
  expect("head -> scheduler proposal", 100 * (20 + 2048 * 4));
  expect("scheduler -> encoder verdict", 4 * 13);
  const edge_plan& tap = edge_called(p, "encoder -> scheduler tap");
  BOOST_TEST(tap.message_bytes_max == tap_bytes_max(configuration("cedar-tiny"), 100, 1000));
  BOOST_TEST(tap.window_bytes >= tap.message_bytes_max);
  BOOST_TEST(tap.queue_messages_max == 3 * (taps_per_step_max + 1));
}

BOOST_AUTO_TEST_CASE(a_step_has_at_most_as_many_requests_as_rows) {
  const plan p =
      planned(with(two_nodes, "rows_per_step: 100, requests: 4", "rows_per_step: 2, requests: 2"));
  BOOST_TEST(edge_called(p, "encoder -> decoder activation").message_bytes_max ==
             2U * 1041 + 2 * 24);
  BOOST_TEST(edge_called(p, "scheduler -> encoder verdict").message_bytes_max == 2U * 13);
  // The default number of requests gives way; a number that was asked for is a mistake.
  const plan few = planned(with(two_nodes, "rows_per_step: 100, requests: 4", "rows_per_step: 5"));
  BOOST_TEST(few.limits().requests == 5U);
  BOOST_TEST(few.limits().prefill_rows == 5U);
}

BOOST_AUTO_TEST_CASE(kv_is_given_out_in_granules_of_whole_pages) {
  // Owners of ratios 1 and 2, pages of 64 entries: 128 positions.
  const plan all = planned(two_nodes);
  BOOST_TEST(all.limits().kv_granule == 128U);
  BOOST_TEST(all.limits().kv_granules == 4U * 8);  // 1000 positions take 8
  const plan less = planned(
      with(two_nodes, "context: 1000", "context: 1000, prefill_rows: 7, kv_positions: 1300"));
  BOOST_TEST(less.limits().kv_granules == 10U);
  BOOST_TEST(less.limits().prefill_rows == 7U);
}

BOOST_AUTO_TEST_CASE(describes_an_edge_to_both_its_ends) {
  const plan p = planned(two_nodes);
  const edge_plan& edge = edge_called(p, "encoder -> decoder activation");
  const flow::edge_contract contract = p.contract(edge.id, 77);
  BOOST_TEST((contract.edge == edge.id));
  BOOST_TEST(contract.name == "encoder -> decoder activation");
  BOOST_TEST(contract.fingerprint == 77U);
  BOOST_TEST(contract.window_messages == 3U);
  BOOST_TEST(contract.window_bytes == edge.window_bytes);
}

BOOST_AUTO_TEST_CASE(sums_what_can_be_on_its_way_between_two_nodes) {
  const plan p = planned(two_nodes);
  std::uint64_t bytes = 0;
  std::uint64_t largest = 0;
  for (const char* name :
       {"head -> scheduler proposal", "decoder -> scheduler tap", "head -> scheduler tap"}) {
    bytes += edge_called(p, name).window_bytes;
    largest = std::max(largest, edge_called(p, name).message_bytes_max);
  }
  const traffic_bound back = p.traffic(node_id{1}, node_id{0});
  BOOST_TEST(back.messages == 3U + 16 + 16);
  BOOST_TEST(back.bytes == bytes);
  BOOST_TEST(back.message_bytes == largest);
  BOOST_TEST(p.traffic(node_id{1}, node_id{7}).messages == 0U);
}

BOOST_AUTO_TEST_CASE(defaults_fit_the_model) {
  const std::string bare =
      with(two_nodes,
           "limits: {rows_per_step: 100, requests: 4, context: 1000, steps_in_flight: 3}\n", "");
  const plan p = planned(bare);
  BOOST_TEST((p.mode() == cedar::session::prefill_mode::exact));
  BOOST_TEST(p.limits().rows_per_step == 128U);
  BOOST_TEST(p.limits().requests == 16U);
  BOOST_TEST(p.limits().context == 2048U);
  BOOST_TEST(p.limits().steps_in_flight == 2U);
  BOOST_TEST((p.transport().kind == transport_kind::ucx));
  BOOST_TEST(p.transport().tls == (std::vector<std::string>{"tcp", "self"}),
             boost::test_tools::per_element());
  BOOST_TEST(p.transport().devices == std::vector<std::string>{"lo"},
             boost::test_tools::per_element());
  BOOST_TEST(p.deadlines().start.count() == 20000);
  BOOST_TEST(p.deadlines().heartbeat_lost.count() == 1000);
  BOOST_TEST(!p.security().secret_file);
  BOOST_TEST(!p.security().allow_remote);

  model::model_config small = configuration("cedar-tiny");
  small.max_positions = 512;
  const auto made = make_plan(*parse_document(bare, "x.yaml"), small);
  BOOST_REQUIRE(made);
  BOOST_TEST(made->limits().context == 512U);
}

BOOST_AUTO_TEST_CASE(takes_what_the_file_says) {
  std::string text = with(two_nodes, "address: 127.0.0.1}\n  back", "address: 10.1.2.3}\n  back");
  text +=
      "transport: {tls: [rc, tcp], devices: [eth0, eth1]}\n"
      "deadlines_ms: {start: 1, step: 2, heartbeat_interval: 3, heartbeat_lost: 7, drain: 5}\n"
      "security: {allow_remote: true, secret_file: keys/secret}\n";
  text = with(text, "front-cpu: {node: front}",
              "front-cpu: {node: front, threads: 5, cores: 1-6, numa: 2, nice: 3}");
  const plan p = planned(with(text, "{node: back}", "{node: back, kind: reference}"));
  BOOST_TEST(p.devices()[0].threads == 5U);
  BOOST_TEST(p.devices()[0].cores == (std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6}),
             boost::test_tools::per_element());
  BOOST_TEST(p.devices()[0].numa.value() == 2U);
  BOOST_TEST(p.devices()[0].nice == 3U);
  BOOST_TEST(p.devices()[1].threads == 1U);
  BOOST_TEST(p.nodes()[0].address == "10.1.2.3");
  BOOST_TEST((p.devices()[1].kind == device_kind::reference));
  BOOST_TEST(p.transport().tls == (std::vector<std::string>{"rc", "tcp"}),
             boost::test_tools::per_element());
  BOOST_TEST(p.transport().devices == (std::vector<std::string>{"eth0", "eth1"}),
             boost::test_tools::per_element());
  BOOST_TEST(p.deadlines().start.count() == 1);
  BOOST_TEST(p.deadlines().step.count() == 2);
  BOOST_TEST(p.deadlines().heartbeat_interval.count() == 3);
  BOOST_TEST(p.deadlines().heartbeat_lost.count() == 7);
  BOOST_TEST(p.deadlines().drain.count() == 5);
  BOOST_TEST(p.security().secret_file.value() == "dir/keys/secret");
  BOOST_TEST(p.security().allow_remote);
}

BOOST_AUTO_TEST_CASE(plans_cuda_devices_and_checks_their_memory_on_any_machine) {
  const auto text = [](const std::string& memory) {
    return with(two_nodes, "back-cpu: {node: back}",
                "back-cpu: {node: back, kind: cuda, index: 3, memory: " + memory + "}");
  };
  const plan p = planned(text("80GiB"));
  BOOST_TEST((p.devices()[1].kind == device_kind::cuda));
  BOOST_TEST(p.devices()[1].index == 3U);
  BOOST_TEST(p.devices()[1].memory.value() == std::uint64_t{80} << 30U);
  BOOST_TEST(p.devices()[0].index == 0U);
  const auto made = make_plan(*parse_document(text("1MiB"), "x.yaml"), configuration("cedar-tiny"));
  BOOST_REQUIRE(!made);
  BOOST_TEST(to_string(made.error()).find("device 'back-cpu' has 1.00 MiB, its units need ") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(checkpoints_are_per_node_and_can_be_overridden) {
  auto document =
      parse_document(with(two_nodes, "back: {", "back: {model_path: /other, "), "dir/x.yaml");
  BOOST_REQUIRE(document);
  const auto own = make_plan(*document, configuration("cedar-tiny"));
  BOOST_REQUIRE(own);
  BOOST_TEST(own->nodes()[0].model_path == "dir/model");
  BOOST_TEST(own->nodes()[1].model_path == "/other");
  override_model(*document, "/given");
  const auto overridden = make_plan(*document, configuration("cedar-tiny"));
  BOOST_REQUIRE(overridden);
  BOOST_TEST(overridden->nodes()[0].model_path == "/given");
  BOOST_TEST(overridden->nodes()[1].model_path == "/given");
}

BOOST_AUTO_TEST_CASE(many_stages_form_a_chain) {
  const std::string stages =
      "    - {name: a, layers: 0, device: front-cpu}\n    - {name: b, layers: 1, device: "
      "back-cpu}\n"
      "    - {name: c, layers: 2-3, device: front-cpu}\n    - {name: d, layers: 4-5, device: "
      "back-cpu}\n"
      "    - {name: e, layers: 6-11, device: front-cpu}\n";
  const plan p = planned(with(two_nodes,
                              "    - {name: encoder, layers: 0-5, device: front-cpu}\n"
                              "    - {name: decoder, layers: 6-11, device: back-cpu}\n",
                              stages));
  for (const char* name :
       {"a -> b activation", "b -> c activation", "c -> d activation", "d -> e activation"}) {
    BOOST_TEST(edge_called(p, name).crosses());
  }
  BOOST_TEST(edge_called(p, "embedding -> a embedded").crosses() == false);
  BOOST_TEST(edge_called(p, "engram -> b engram_rows of layer 1").crosses());
  BOOST_TEST(edge_called(p, "engram -> d engram_rows of layer 4").crosses());
  BOOST_TEST(edge_called(p, "e -> head head_input").crosses());
}

BOOST_AUTO_TEST_CASE(foreign_ids_are_defects) {
  const plan p = planned(two_nodes);
  BOOST_CHECK_THROW(p[unit_id{6}], defect);
  BOOST_CHECK_THROW(p[edge_id{17}], defect);
  BOOST_CHECK_THROW(p[node_id{2}], defect);
  BOOST_CHECK_THROW(p[device_id{2}], defect);
}

BOOST_AUTO_TEST_SUITE_END()
