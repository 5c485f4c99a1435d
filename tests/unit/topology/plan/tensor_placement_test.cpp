// Goal: a plan knows which tensors each unit reads, and misses none of the model's.
// Method: units are made from a checkpoint, which remembers what was asked of it; and the released
// list of names is divided by the names alone.
#include "topology/plan/tensor_placement.hpp"

#include <boost/test/unit_test.hpp>
#include <map>
#include <set>

#include "kernels/registry/registry.hpp"
#include "runtime/stage/model_source.hpp"
#include "tests/unit/topology/plan/support.hpp"

using namespace cedar;
using namespace cedar::topology;
using namespace cedar::topology::test;

namespace {

std::string drafted() {
  return with(two_nodes, "  head: {device: back-cpu}\n",
              "  head: {device: back-cpu}\n  drafter: {device: front-cpu}\n");
}

std::string with_experts() {
  return with(drafted(), "  head:",
              "  experts:\n    - {name: some, layers: 3-7, experts: 2-4, device: front-cpu}\n"
              "    - {name: all, layers: 9, device: back-cpu}\n  head:");
}

std::string with_shards() {
  return with(two_nodes, "  engram: {device: front-cpu}\n",
              "  engram:\n    - {name: low, layer: 1, rows: 0-5, device: front-cpu}\n"
              "    - {name: high, layer: 1, rows: 6-, device: back-cpu}\n"
              "    - {name: other, layer: 4, device: back-cpu}\n");
}

std::set<std::string> planned_for(const plan& p, unit_id unit) {
  std::set<std::string> names;
  for (const model::expected_tensor& tensor : model::manifest(p.model()))
    for (const unit_id reader : readers_of(p, tensor))
      if (reader == unit) names.insert(tensor.name);
  return names;
}

/// What making the unit maps.
std::set<std::string> mapped_by(const unit_plan& unit) {
  const auto backend = kernels::make_backend("cpu");
  const auto model = stage::model_source::open(CEDAR_SOURCE_DIR "/configs/models/cedar-tiny");
  BOOST_REQUIRE_MESSAGE(model, (model ? "" : model.error().message));
  const stage::model_source& source = **model;
  bool made = std::holds_alternative<scheduler_role>(unit.role);
  if (std::holds_alternative<embedding_role>(unit.role)) made = source.make_embedding().has_value();
  if (const auto* role = std::get_if<engram_role>(&unit.role))
    made = source.make_engram(role->shards).has_value();
  if (const auto* role = std::get_if<stage_role>(&unit.role)) {
    stage::layer_stage_options options{role->layers.first, role->layers.last, 1, 100};
    options.experts_elsewhere = role->experts_elsewhere;
    made = source.make_layers(*backend, options).has_value();
  }
  if (const auto* role = std::get_if<experts_role>(&unit.role))
    made = source.make_experts(*backend, role->slice).has_value();
  if (std::holds_alternative<head_role>(unit.role)) made = source.make_head(*backend).has_value();
  if (std::holds_alternative<drafter_role>(unit.role))
    made = source.make_drafter(*backend, 1).has_value();
  BOOST_TEST(made, unit.name);
  const std::vector<std::string> names = source.checkpoint().touched();
  return {names.begin(), names.end()};
}

/// The unit that a tensor of the release belongs to, by its name.
std::string owner_by_name(const std::string& name) {
  if (name == "embed.weight") return "embedding";
  if (name == "norm.weight" || name == "head.weight") return "head";
  if (name.starts_with("mtp.")) return "drafter";
  if (name.find(".engram.embed.") != std::string::npos) return "engram";
  if (!name.starts_with("layers.")) return "nobody";
  return std::stoul(name.substr(7)) < 20 ? "encoder" : "decoder";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tensor_placement)

BOOST_AUTO_TEST_CASE(units_map_what_was_planned_for_them) {
  for (const std::string& text : {drafted(), with_experts(), with_shards()}) {
    const plan p = planned(text);
    for (const unit_plan& unit : p.units())
      BOOST_TEST(mapped_by(unit) == planned_for(p, unit.id), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(every_tensor_of_the_release_has_its_unit_and_the_drafter_two_replicas) {
  const plan p =
      planned(with(with(drafted(), "layers: 0-5", "layers: 0-19"), "layers: 6-11", "layers: 20-39"),
              "released");
  std::map<std::string, std::size_t> counts;
  std::set<std::string> replicas;
  for (const model::expected_tensor& tensor : model::manifest(p.model())) {
    const std::vector<unit_id> readers = readers_of(p, tensor);
    const std::string owner = owner_by_name(tensor.name);
    ++counts[owner];
    BOOST_REQUIRE_MESSAGE(readers.empty() == (owner == "nobody"), tensor.name);
    if (readers.empty()) continue;
    BOOST_REQUIRE_MESSAGE(p[readers[0]].name == owner, tensor.name);
    if (readers.size() == 1) continue;
    BOOST_TEST(readers.size() == 2U);
    BOOST_TEST(p[readers[1]].name == "drafter");
    replicas.insert(tensor.name);
  }
  BOOST_TEST(replicas == (std::set<std::string>{"embed.weight", "head.weight"}),
             boost::test_tools::per_element());
  BOOST_TEST(counts["engram"] == 4U);
  // The tower and its delimiters, which no unit of this file reads.
  BOOST_TEST(counts["nobody"] == 3U + 2 + 32 * 8 + 5);
}

BOOST_AUTO_TEST_SUITE_END()
