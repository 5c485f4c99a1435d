// Goal: the manifest is the released one, tensor by tensor, and a checkpoint that differs in any
// way is named. Method: the published list of the release, golden checkpoints, and copies of a
// checkpoint with one tensor changed.
#include "runtime/model/manifest.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/store/safetensors_writer.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

using namespace cedar::model;
using cedar::errc;
using cedar::kernels::dtype;
namespace store = cedar::store;

const std::filesystem::path models = std::filesystem::path(CEDAR_SOURCE_DIR) / "configs/models";
const std::filesystem::path golden = std::filesystem::path(CEDAR_TEST_DATA) / "golden";

std::vector<expected_tensor> released_manifest() {
  return manifest(parse_config(models / "released").value());
}

/// tiny-12's tensors, to be written to a folder with a change.
struct copied {
  std::vector<expected_tensor> expected = manifest(parse_config(golden / "tiny-12").value());
  store::checkpoint source = store::checkpoint::open(golden / "tiny-12").value();
  std::vector<store::tensor_source> tensors;
  cedar::test::temporary_folder folder;

  copied() {
    for (const store::tensor_info& tensor : source.tensors())
      tensors.push_back({tensor.name, tensor.dtype, tensor.shape, source.bytes(tensor).value()});
  }
  store::tensor_source& named(const std::string& name) {
    return *std::find_if(tensors.begin(), tensors.end(),
                         [&](const auto& tensor) { return tensor.name == name; });
  }
  manifest_check check_copy() const {
    BOOST_REQUIRE(store::write_safetensors(folder.path() / "model.safetensors", tensors));
    return check(expected, store::checkpoint::open(folder.path()).value());
  }
};

void expect_only(const std::vector<std::string>& messages, const std::string& part) {
  BOOST_REQUIRE(messages.size() == 1U);
  BOOST_TEST_CONTEXT(messages[0]) {
    BOOST_TEST(messages[0].find(part) != std::string::npos);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(manifest_suite)

BOOST_AUTO_TEST_CASE(equals_the_published_list_of_the_release) {
  const auto published = nlohmann::json::parse(cedar::test::read_file(CEDAR_TENSOR_NAMES));
  std::map<std::string, std::string> list;
  for (const auto& row : published["tensors"])
    list[row[0]] = row[1].get<std::string>() + row[2].dump();
  BOOST_REQUIRE(list.size() == 96085U);

  const auto expected = released_manifest();
  BOOST_TEST(expected.size() == 96085U);
  std::uint64_t bytes = 0;
  for (const expected_tensor& tensor : expected) {
    const auto row = list.find(tensor.name);
    BOOST_REQUIRE_MESSAGE(row != list.end(), tensor.name << " is not published");
    const std::string described =
        std::string(to_string(tensor.dtype)) + nlohmann::json(tensor.shape).dump();
    BOOST_REQUIRE_MESSAGE(described == row->second, tensor.name << " " << described);
    list.erase(row);
    bytes += tensor.bytes();
  }
  BOOST_TEST(list.empty());
  BOOST_TEST(bytes == 510286023000U);
}

BOOST_AUTO_TEST_CASE(sums_to_the_published_bytes_of_each_dtype) {
  std::map<dtype, std::uint64_t> bytes;
  for (const expected_tensor& tensor : released_manifest()) bytes[tensor.dtype] += tensor.bytes();
  BOOST_TEST(bytes.size() == 5U);
  BOOST_TEST(bytes[dtype::i8] == 278585671680U);
  BOOST_TEST(bytes[dtype::f8_e4m3] == 204015223296U);
  BOOST_TEST(bytes[dtype::f8_e8m0] == 23563015184U);
  BOOST_TEST(bytes[dtype::bf16] == 3952883712U);
  BOOST_TEST(bytes[dtype::f32] == 169229128U);
}

BOOST_AUTO_TEST_CASE(sums_to_the_published_parameters) {
  std::uint64_t backbone = 0;
  std::map<component, component_total> by_part;
  for (const component_total& total : totals(released_manifest())) {
    by_part[total.part] = total;
    if (total.part != component::engram_table && total.part != component::dspark &&
        total.part != component::vision)
      backbone += total.parameters;
  }
  BOOST_TEST(by_part.size() == component_count);
  BOOST_TEST(backbone == 551880835184U);
  BOOST_TEST(by_part[component::engram_table].parameters == 196613849600U);
  BOOST_TEST(by_part[component::dspark].parameters == 14225362530U);
  BOOST_TEST(by_part[component::vision].parameters == 485268480U);
  // 40 layers of 384 experts of 18,800,640 bytes.
  BOOST_TEST(by_part[component::experts].bytes == 40ULL * 384 * 18800640);
  BOOST_TEST(by_part[component::experts].tensors == 40U * 384 * 6);
}

BOOST_AUTO_TEST_CASE(tensors_know_their_layer_and_expert) {
  for (const expected_tensor& tensor : released_manifest()) {
    if (tensor.name == "layers.7.ffn.experts.300.w2.scale") {
      BOOST_TEST((tensor.part == component::experts));
      BOOST_TEST(tensor.layer.value() == 7U);
      BOOST_TEST(tensor.expert.value() == 300U);
    }
    if (tensor.name == "mtp.1.ffn.experts.3.w2.scale") {
      BOOST_TEST((tensor.part == component::dspark));
      BOOST_TEST(tensor.layer.value() == 1U);
    }
    if (tensor.name == "head.weight") BOOST_TEST(!tensor.layer.has_value());
    if (tensor.name.starts_with("layers."))
      BOOST_TEST(tensor.name.starts_with("layers." + std::to_string(*tensor.layer) + "."));
  }
}

BOOST_AUTO_TEST_CASE(all_checkpoints_here_are_clean) {
  for (const auto& folder :
       {golden / "tiny-12", golden / "tiny-40", golden / "tiny-vision", models / "cedar-tiny"}) {
    const auto expected = manifest(parse_config(folder).value());
    const auto found = store::checkpoint::open(folder);
    BOOST_REQUIRE(found.has_value());
    const manifest_check differences = check(expected, *found);
    const auto outcome = differences.outcome("x");
    BOOST_TEST_CONTEXT(folder << (outcome ? "" : outcome.error().message)) {
      BOOST_TEST(differences.ok());
      BOOST_TEST(outcome.has_value());
      const bool vision = folder == golden / "tiny-vision";
      BOOST_REQUIRE(differences.not_placed.size() == (vision ? 2U : 1U));
      BOOST_TEST((differences.not_placed[0].part == component::dspark));
      if (vision) BOOST_TEST((differences.not_placed[1].part == component::vision));
    }
    BOOST_TEST(found->mapped_bytes() == 0U);  // a check reads headers only
  }
}

BOOST_FIXTURE_TEST_CASE(a_missing_tensor_is_named, copied) {
  std::erase_if(tensors,
                [](const auto& tensor) { return tensor.name == "layers.3.attn.wkv.scale"; });
  const manifest_check differences = check_copy();
  expect_only(differences.missing, "layers.3.attn.wkv.scale (F8_E8M0 [2, 4])");
  BOOST_TEST((differences.outcome("x").error().code == errc::not_found));
}

BOOST_FIXTURE_TEST_CASE(a_missing_draft_tensor_is_named_though_nothing_reads_it, copied) {
  std::erase_if(tensors, [](const auto& tensor) { return tensor.name == "mtp.2.norm.weight"; });
  expect_only(check_copy().missing, "mtp.2.norm.weight");
}

BOOST_FIXTURE_TEST_CASE(an_extra_tensor_is_named, copied) {
  named("layers.0.ffn.gate.bias_vl").name = "layers.0.ffn.gate.bias_v2";
  const manifest_check differences = check_copy();
  expect_only(differences.extra, "layers.0.ffn.gate.bias_v2 in model.safetensors");
  expect_only(differences.missing, "layers.0.ffn.gate.bias_vl");
  const auto outcome = differences.outcome("folder");
  BOOST_TEST((outcome.error().code == errc::mismatch));
  BOOST_TEST(outcome.error().message.starts_with("folder: "));
}

BOOST_FIXTURE_TEST_CASE(another_shape_or_dtype_is_named, copied) {
  auto& gate = named("layers.5.ffn.gate.weight");
  std::swap(gate.shape[0], gate.shape[1]);
  named("layers.1.ffn.experts.2.w1.weight").dtype = dtype::u8;
  const manifest_check differences = check_copy();
  expect_only(differences.misshaped, "layers.5.ffn.gate.weight is [128, 8]");
  expect_only(differences.mistyped, "layers.1.ffn.experts.2.w1.weight is U8");
}

BOOST_FIXTURE_TEST_CASE(engram_tables_have_the_configured_rows, copied) {
  auto& table = named("layers.4.engram.embed.scale");
  table.shape[0] -= 1;
  table.bytes = table.bytes.first(table.shape[0]);
  expect_only(check_copy().misshaped, "layers.4.engram.embed.scale is [863, 1]");
}

BOOST_FIXTURE_TEST_CASE(aliases_are_accepted, copied) {
  for (auto& tensor : tensors) {
    tensor.name = "model." + tensor.name;
    for (const auto& [released, alias] :
         {std::pair<std::string, std::string>{".attn.", ".self_attn."},
          {".ffn.", ".mlp."},
          {".scale", ".weight_scale_inv"}})
      if (const std::size_t at = tensor.name.find(released); at != std::string::npos)
        tensor.name.replace(at, released.size(), alias);
    if (tensor.name.ends_with(".gate.bias"))
      tensor.name.replace(tensor.name.size() - 4, 4, "e_score_correction_bias");
  }
  const manifest_check differences = check_copy();
  const auto outcome = differences.outcome("x");
  BOOST_TEST_CONTEXT((outcome ? "" : outcome.error().message)) {
    BOOST_TEST(differences.ok());
  }
}

BOOST_FIXTURE_TEST_CASE(many_differences_are_counted, copied) {
  std::erase_if(tensors, [](const auto& tensor) { return tensor.name.starts_with("layers.0."); });
  const manifest_check differences = check_copy();
  BOOST_TEST(differences.missing.size() > 20U);
  const std::string message = differences.outcome("x").error().message;
  BOOST_TEST(message.find(std::to_string(differences.missing.size() - 20) + " more") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(files_of_units_placed_elsewhere_may_be_absent) {
  const cedar::test::temporary_folder host;
  for (const auto& file : std::filesystem::directory_iterator(golden / "tiny-40"))
    if (file.is_regular_file()) std::filesystem::copy(file, host.path());
  // This shard holds the decoder layers (a part of layer 20 excepted) and the draft blocks.
  std::filesystem::remove(host.path() / "model-00002-of-00003.safetensors");
  const auto tiny40 = manifest(parse_config(host.path()).value());
  const auto found = store::checkpoint::open(host.path());
  BOOST_REQUIRE(found.has_value());
  const manifest_check whole = check(tiny40, *found);
  BOOST_TEST(!whole.not_here.empty());
  BOOST_TEST(whole.missing.empty());
  BOOST_TEST(whole.not_here[0].find("model-00002-of-00003.safetensors") != std::string::npos);
  const manifest_check first_layers = check(tiny40, *found, [](const expected_tensor& tensor) {
    return in_text_model(tensor) && tensor.layer && *tensor.layer < 20;
  });
  BOOST_TEST(first_layers.ok());
}

BOOST_AUTO_TEST_SUITE_END()
