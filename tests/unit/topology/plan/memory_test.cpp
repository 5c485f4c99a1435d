// Goal: the memory of a plan is what real stages hold, and a device that is too small is refused
// with the numbers.
// Method: state of requests as stages make it, counted ring by ring and page by page, for whole
// models and for stages with replicas; weights against the manifest's own sums.
#include "topology/plan/memory.hpp"

#include <boost/test/unit_test.hpp>

#include "runtime/model/compressor.hpp"
#include "runtime/model/manifest.hpp"
#include "runtime/stage/layer_stage.hpp"
#include "tests/unit/topology/plan/support.hpp"

using namespace cedar;
using namespace cedar::topology;
using namespace cedar::topology::test;

namespace {

std::size_t page_bytes(const model::model_config& c, bool entries, bool keys) {
  memory::page_layout layout;
  if (entries)
    layout.main_entry_bytes = kernels::entry_bytes(model::global_entry_format, c.head_dim);
  if (keys)
    layout.index_entry_bytes = kernels::entry_bytes(model::index_entry_format, c.index_head_dim);
  return layout.page_bytes();
}

/// What a real stage's pools may take and a real request's rings do.
std::uint64_t kv_of_stage(const plan& p, const stage_role& role, const memory_load& load) {
  const model::model_config& c = p.model();
  const model::schedule schedule(c);
  const stage::page_counts pages = stage::pages_needed(
      schedule, {role.layers.first, role.layers.last, load.requests, load.positions, role.imports,
                 role.exports, p.limits().kv_granules, p.limits().prefix_granules});
  stage::kv_pools pools{{{64, 1, 1}, 1}, {{64, 1, 0}, 1}, {{64, 0, 1}, 1}};
  stage::sequence_state state(c, schedule, role.layers.first, role.layers.last, role.imports,
                              pools);
  std::uint64_t rings = 0;
  for (std::uint32_t layer = role.layers.first; layer <= role.layers.last; ++layer) {
    rings += state.window(layer).bytes();
    if (schedule[layer].mode == model::layer_mode::full && schedule[layer].ratio > 1)
      rings += state.pending(layer).bytes();
  }
  return load.requests * rings + pages.whole * page_bytes(c, true, true) +
         pages.entries * page_bytes(c, true, false) + pages.keys * page_bytes(c, false, true);
}

std::string split(const std::string& mode) {
  return with(with(two_nodes, "layers: 0-5", "layers: 0-7"), "layers: 6-11", "layers: 8-11") +
         "splits: [{owner: 6, mode: " + mode + "}]\n";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_of_a_plan)

BOOST_AUTO_TEST_CASE(state_is_that_of_real_stages) {
  const std::string little =
      with(split("mirror"), "context: 1000", "context: 1000, kv_positions: 1024");
  const std::string prefixes =
      with(split("gather"), "context: 1000", "context: 1000, prefix_positions: 700");
  for (const std::string& text : {two_nodes, split("mirror"), split("gather"), little, prefixes}) {
    const plan p = planned(text);
    for (const memory_load load : {memory_load{4, 1000}, memory_load{1, 1}, memory_load{3, 129}}) {
      const auto needs = memory_of_units(p, load);
      for (const unit_plan& unit : p.units()) {
        const auto* role = std::get_if<stage_role>(&unit.role);
        const std::uint64_t expected = role ? kv_of_stage(p, *role, load) : 0;
        BOOST_TEST(needs[unit.id.value].kv == expected, unit.name);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_tensor_of_the_text_model_is_on_one_unit) {
  for (const std::string name : {"cedar-tiny", "released"}) {
    const std::string text = name == "cedar-tiny"
                                 ? two_nodes
                                 : with(with(with(two_nodes, "layers: 0-5", "layers: 0-19"),
                                             "layers: 6-11", "layers: 20-39"),
                                        "context: 1000", "context: 100000");
    const plan p = planned(text, name);
    std::uint64_t placed = 0;
    for (const memory_need& need : memory_of_units(p, largest_load(p))) placed += need.weights;
    std::uint64_t whole = 0;
    for (const model::expected_tensor& tensor : model::manifest(p.model()))
      if (model::in_text_model(tensor)) whole += tensor.bytes();
    BOOST_TEST(placed == whole);
  }
}

BOOST_AUTO_TEST_CASE(a_device_needs_what_its_units_need) {
  const plan p = planned(two_nodes);
  const auto units = memory_of_units(p, largest_load(p));
  const auto devices = memory_of_devices(p, largest_load(p));
  BOOST_REQUIRE(devices.size() == 2U);
  const auto need = [&](const char* unit) { return units[unit_called(p, unit).value]; };
  memory_need back = need("decoder");
  back += need("head");
  BOOST_TEST((devices[1] == back));
  BOOST_TEST(need("scheduler").weights == 0U);
  BOOST_TEST(need("scheduler").credit > 0U);
  std::uint64_t windows = 0;
  for (const edge_id edge : p.edges_into(unit_called(p, "head"))) windows += p[edge].window_bytes;
  BOOST_TEST(need("head").credit == windows);
  // Positions beyond the context are not served.
  BOOST_TEST((memory_of_units(p, {4, 5000}) == units));
}

BOOST_AUTO_TEST_CASE(a_device_that_is_too_small_is_refused_with_numbers) {
  const plan p = planned(two_nodes);
  const std::uint64_t need = memory_of_devices(p, largest_load(p))[1].total();
  const auto text = [](std::uint64_t kib) {
    return with(two_nodes, "back-cpu: {node: back}",
                "back-cpu: {node: back, memory: " + std::to_string(kib) + "KiB}");
  };
  const plan fits = planned(text(need / 1024 + 1));
  BOOST_TEST(fits.devices()[1].memory.value() == (need / 1024 + 1) * 1024);
  BOOST_TEST(!fits.devices()[0].memory);
  const auto found = mistakes(text(need / 1024 - 1));
  BOOST_REQUIRE(found.size() == 1U);
  BOOST_TEST(found[0].find("9:34 device 'back-cpu' has ") == 0U, found[0]);
  for (const std::string& part :
       {"its units need " + bytes_text(need) + ": weights ",
        std::string("KV of 4 requests of 1000 "
                    "positions "),
        std::string("| move layers or units to another device, or lower limits.requests")})
    BOOST_TEST(found[0].find(part) != std::string::npos, found[0] << " lacks " << part);
}

BOOST_AUTO_TEST_CASE(sizes_have_three_digits) {
  BOOST_TEST(bytes_text(999) == "999 B");
  BOOST_TEST(bytes_text(1000) == "0.98 KiB");
  BOOST_TEST(bytes_text(1536) == "1.50 KiB");
  BOOST_TEST(bytes_text(20U << 20U) == "20.0 MiB");
  BOOST_TEST(bytes_text(510'286'023'000) == "475 GiB");
}

BOOST_AUTO_TEST_SUITE_END()
