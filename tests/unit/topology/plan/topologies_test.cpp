// Goal: the topologies that cedar ships are sound, and do what they are there to show.
// Method: each file in configs/topologies is planned for the checkpoint that it names.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <utility>
#include <variant>

#include "tests/unit/topology/plan/support.hpp"
#include "topology/plan/memory.hpp"

using namespace cedar;
using namespace cedar::topology;

namespace {

plan shipped(const std::filesystem::path& file) {
  const auto document = read_document(file);
  BOOST_REQUIRE_MESSAGE(document, (document ? "" : to_string(document.error())));
  const auto config = model::parse_config(document->resolve(document->model_path.value));
  BOOST_REQUIRE_MESSAGE(config, (config ? "" : config.error().message));
  const auto made = make_plan(*document, *config);
  BOOST_REQUIRE_MESSAGE(made, (made ? "" : to_string(made.error())));
  return *made;
}

const std::filesystem::path folder = CEDAR_SOURCE_DIR "/configs/topologies";

}  // namespace

BOOST_AUTO_TEST_SUITE(shipped_topologies)

BOOST_AUTO_TEST_CASE(are_all_sound) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    ++count;
    const plan p = shipped(entry.path());
    BOOST_TEST(std::filesystem::exists(p.client().model_path / "config.json"));
  }
  BOOST_TEST(count >= 3U);
}

BOOST_AUTO_TEST_CASE(one_process_crosses_nothing) {
  const plan p = shipped(folder / "one-process.yaml");
  BOOST_TEST(p.nodes().size() == 1U);
  for (const edge_plan& edge : p.edges()) BOOST_TEST(!edge.crosses(), edge.name);
}

BOOST_AUTO_TEST_CASE(two_processes_cut_between_encoder_and_decoder) {
  for (const char* name : {"two-process.yaml", "two-process-shm.yaml"}) {
    const plan p = shipped(folder / name);
    BOOST_TEST(p.nodes().size() == 2U);
    BOOST_TEST(p.client().name == "front");
    const auto& decoder = std::get<stage_role>(p[test::unit_called(p, "decoder")].role);
    BOOST_TEST(decoder.layers.first == test::configuration("cedar-tiny").kv_sources.back());
    for (const node_plan& node : p.nodes()) BOOST_TEST(node.address == "127.0.0.1");
    BOOST_TEST(p.transport().devices == std::vector<std::string>{"lo"},
               boost::test_tools::per_element());
  }
  BOOST_TEST(shipped(folder / "two-process.yaml").transport().tls.front() == "tcp");
  BOOST_TEST(shipped(folder / "two-process-shm.yaml").transport().tls.front() == "posix");
}

BOOST_AUTO_TEST_CASE(workers_hold_all_routed_experts_and_nothing_else) {
  const plan p = shipped(folder / "experts.yaml");
  const model::model_config& config = test::configuration("cedar-tiny");
  BOOST_TEST(p.nodes().size() == 5U);
  std::size_t experts = 0;
  for (const node_plan& node : p.nodes()) {
    if (node.id == p.client().id) continue;
    BOOST_TEST_REQUIRE(node.units.size() == 1U);
    const auto& slice = std::get<experts_role>(p[node.units[0]].role).slice;
    experts += slice.experts.size() * (slice.last_layer - slice.first_layer + 1);
  }
  BOOST_TEST(experts == std::size_t{config.routed_experts} * config.layers);
}

BOOST_AUTO_TEST_CASE(three_nodes_share_the_decoders_index_and_nothing_else) {
  const plan p = shipped(folder / "indexer-shards.yaml");
  BOOST_TEST(p.nodes().size() == 4U);
  for (const node_plan& node : p.nodes()) {
    if (node.id == p.client().id) continue;
    BOOST_TEST_REQUIRE(node.units.size() == 1U);
    const auto& shard = std::get<indexer_role>(p[node.units[0]].role).shard;
    BOOST_TEST(shard.owner == 6U);
    BOOST_TEST(shard.parts == 3U);
    BOOST_TEST(shard.part + 1 == node.id.value);
  }
}

BOOST_AUTO_TEST_CASE(hosts_of_tables_hold_them_and_nothing_else) {
  const plan p = shipped(folder / "engram-shards.yaml");
  const model::model_config& config = test::configuration("cedar-tiny");
  BOOST_TEST(p.nodes().size() == 3U);
  std::uint64_t rows = 0;
  for (const node_plan& node : p.nodes()) {
    if (node.id == p.client().id) continue;
    for (const unit_id unit : node.units) {
      const auto& shards = std::get<engram_role>(p[unit].role).shards;
      BOOST_TEST_REQUIRE(shards.size() == 1U);
      rows += shards[0].rows_count();
    }
  }
  BOOST_TEST(rows == config.engram.rows[0] + config.engram.rows[1]);
  // A stage begins where rows are needed, so that they have the time until then.
  for (const unit_plan& unit : p.units())
    if (const auto* stage = std::get_if<stage_role>(&unit.role))
      for (const std::uint32_t layer : stage->engram_layers)
        BOOST_TEST(layer == stage->layers.first);
}

BOOST_AUTO_TEST_CASE(two_hosts_join_where_the_client_listens) {
  const plan p = shipped(folder / "two-hosts.yaml");
  BOOST_TEST((p.find_node("back")->start == node_start::join));
  BOOST_TEST(p.find_node("back")->model_path == "/data/cedar-tiny");
  BOOST_TEST(p.control().host == p.client().address);
  BOOST_TEST(p.control().port != 0U);
  BOOST_TEST(p.security().secret_file->parent_path() == folder);
}

BOOST_AUTO_TEST_CASE(the_release_fits_five_hosts) {
  const plan p = shipped(folder / "released/five-hosts.yaml");
  BOOST_TEST(p.nodes().size() == 5U);
  const std::vector<memory_need> needs = memory_of_devices(p, largest_load(p));
  for (const device_plan& device : p.devices()) {
    BOOST_TEST_REQUIRE(device.memory.has_value());
    BOOST_TEST(needs[device.id.value].total() <= *device.memory, device.name);
    // No host is there for nothing.
    BOOST_TEST(needs[device.id.value].weights > *device.memory / 2, device.name);
  }
  for (const edge_plan& edge : p.edges())
    if (edge.crosses()) BOOST_TEST((p.link(edge.from, edge.to) != nullptr), edge.name);
}

BOOST_AUTO_TEST_CASE(the_release_fits_gpus_with_layers_on_each) {
  for (const auto& [file, gpus] : {std::pair{"eight-gpus.yaml", 8}, {"sixteen-gpus.yaml", 16}}) {
    const plan p = shipped(folder / "released" / file);
    const std::vector<memory_need> needs = memory_of_devices(p, largest_load(p));
    int with_layers = 0;
    for (const device_plan& device : p.devices()) {
      BOOST_TEST_REQUIRE(device.memory.has_value());
      BOOST_TEST(needs[device.id.value].total() <= *device.memory, device.name);
      const bool layers = std::ranges::any_of(p.units(), [&](const unit_plan& unit) {
        return unit.device == device.id && std::holds_alternative<stage_role>(unit.role);
      });
      BOOST_TEST((device.kind == device_kind::cuda) == layers, device.name);
      with_layers += layers ? 1 : 0;
    }
    BOOST_TEST(with_layers == gpus, file);
    for (const edge_plan& edge : p.edges())
      if (edge.crosses()) BOOST_TEST((p.link(edge.from, edge.to) != nullptr), edge.name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
