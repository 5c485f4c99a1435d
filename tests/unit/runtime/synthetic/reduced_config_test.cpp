// Goal: a reduced configuration is valid, and each of its layers plays the role that it had; what
// is missing is named. Method: selections of the released schedule, against that schedule.
#include "runtime/synthetic/reduced_config.hpp"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <map>

#include "runtime/model/engram_hash.hpp"
#include "runtime/model/manifest.hpp"
#include "runtime/model/schedule.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace cedar;
using synthetic::parse_layers;
using synthetic::reduction;

namespace {

const std::string released = test::read_file(std::filesystem::path(CEDAR_SOURCE_DIR) /
                                             "configs/models/released/config.json");

result<std::string> reduced(const std::string& layers, std::uint32_t experts = 8) {
  return synthetic::reduce_config({released, "released"},
                                  {*parse_layers(layers), experts, 2048, 100, 1681});
}

model::model_config parsed(const std::string& text) {
  model::config_reading reading = model::read_config_text({text, "config"});
  for (const std::string& problem : reading.errors) BOOST_ERROR(problem);
  BOOST_TEST(reading.warnings.empty());
  return *reading.config;
}

void check_refused(const result<std::string>& what, const std::vector<std::string>& parts) {
  BOOST_TEST_REQUIRE(!what.has_value());
  for (const std::string& part : parts)
    BOOST_TEST(what.error().message.find(part) != std::string::npos,
               "no \"" << part << "\" in: " << what.error().message);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reduced_config)

BOOST_AUTO_TEST_CASE(layers_keep_their_roles_and_widths) {
  const model::model_config whole = parsed(released);
  const model::schedule before(whole);
  for (const std::string layers :
       {"0", "0-39", "0-3,20-21", "1,14-15", "20-21,24,28-29", "2,8,14,20"})
    BOOST_TEST_CONTEXT("layers " << layers) {
      const std::vector<std::uint32_t> chosen = *parse_layers(layers);
      const auto text = reduced(layers);
      BOOST_TEST_REQUIRE(text.has_value(), text.error().message);
      const model::model_config config = parsed(*text);
      const model::schedule after(config);
      BOOST_TEST_REQUIRE(config.layers == chosen.size());
      std::uint32_t modules = 0;
      for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
        const model::layer_schedule& is = after[layer];
        const model::layer_schedule& was = before[chosen[layer]];
        BOOST_TEST((is.mode == was.mode));
        BOOST_TEST(is.ratio == was.ratio);
        BOOST_TEST(is.makes_candidates == was.makes_candidates);
        BOOST_TEST(is.uses_candidates == was.uses_candidates);
        BOOST_TEST(is.owner.has_value() == was.owner.has_value());
        if (is.owner) BOOST_TEST(chosen[*is.owner] == *was.owner);
        if (is.index_source) BOOST_TEST(chosen[*is.index_source] == *was.index_source);
        BOOST_TEST(is.engram.has_value() == was.engram.has_value());
        if (is.engram) BOOST_TEST(*is.engram == modules++);
      }
      BOOST_TEST(config.width == whole.width);
      BOOST_TEST(config.expert_inner == whole.expert_inner);
      BOOST_TEST(config.experts_per_token == whole.experts_per_token);
      BOOST_TEST(config.routed_experts == 8U);
      BOOST_TEST(config.vocabulary == 2048U);
      BOOST_TEST(model::make_engram_tables(config).has_value());
    }
}

BOOST_AUTO_TEST_CASE(draft_blocks_and_vision_keep_their_widths) {
  const model::model_config whole = parsed(released);
  const auto text = synthetic::reduce_config(
      {released, "released"}, {{0, 1, 2, 20}, 16, 2048, 100, 1681, token_id{2046}, token_id{2045}});
  BOOST_TEST_REQUIRE(text.has_value(), text.error().message);
  const model::model_config config = parsed(*text);
  BOOST_TEST(config.dspark.blocks == 3U);
  BOOST_TEST(config.dspark.block_size == 5U);
  BOOST_TEST(config.dspark.target_layers == (std::vector<std::uint32_t>{1, 2, 3}),
             boost::test_tools::per_element());
  BOOST_TEST(config.dspark.routed_experts == 16U);
  BOOST_TEST(config.dspark.noise_token == 2046);
  BOOST_TEST(config.image_token == 2045);
  // Of a draft block and the tower only experts and tokens are fewer.
  const auto shapes = [](const model::model_config& of, bool tokens) {
    std::map<std::string, std::vector<std::uint64_t>> out;
    for (const model::expected_tensor& tensor : model::manifest(of))
      if ((tensor.part == model::component::dspark || tensor.part == model::component::vision) &&
          !tensor.expert && tensor.name.find(".ffn.gate.") == std::string::npos &&
          (tensor.name.find("markov") != std::string::npos) == tokens)
        out[tensor.name] = tensor.shape;
    return out;
  };
  BOOST_TEST((shapes(config, false) == shapes(whole, false)));
  BOOST_TEST(shapes(config, false).size() > 300U);
  BOOST_TEST(shapes(config, true).at("mtp.2.markov_head.embed.weight") ==
                 (std::vector<std::uint64_t>{2048, 256}),
             boost::test_tools::per_element());

  const model::model_config without = parsed(reduced("0-2,20").value());
  BOOST_TEST(without.dspark.blocks == 0U);
  BOOST_TEST(without.vision.layers == 0U);
}

BOOST_AUTO_TEST_CASE(a_draft_block_has_no_more_experts_than_it_had) {
  const auto text = synthetic::reduce_config({released, "released"},
                                             {{0, 1, 2}, 384, 2048, 100, 1681, token_id{2046}});
  BOOST_TEST(parsed(text.value()).dspark.routed_experts == 128U);
  check_refused(synthetic::reduce_config({released, "released"},
                                         {{0, 1}, 8, 2048, 100, 1681, token_id{2046}}),
                {"the draft blocks tap 3 layers, chosen are 2"});
}

BOOST_AUTO_TEST_CASE(what_a_layer_needs_and_is_not_chosen_is_named) {
  check_refused(reduced("0-1,3,21,24"), {"layer 3 reads the global KV of layer 2",
                                         "layer 21 reads the global KV of layer 20",
                                         "layer 24 reads the global KV of layer 20"});
  check_refused(reduced("20,29"), {"layer 29 uses the selection of layer 28"});
  check_refused(reduced("0,40-41"), {"no layer 40: the model has 0 to 39", "no layer 41"});
  check_refused(reduced("0-1", 5), {"num_experts_per_tok 6 must not exceed n_routed_experts 5"});
  check_refused(synthetic::reduce_config({"{", "odd.json"}, {{0}, 8, 2048, 100, 1681}),
                {"odd.json"});
}

BOOST_AUTO_TEST_CASE(layers_are_ascending_numbers_and_ranges) {
  BOOST_TEST(*parse_layers("0-3,20-21") == (std::vector<std::uint32_t>{0, 1, 2, 3, 20, 21}),
             boost::test_tools::per_element());
  for (const char* wrong : {"", ",", "1,", "3-1", "1,1", "2,1", "a", "1-", "-1", "1 ,2",
                            "0-99999999", "0-3,3-5", "1.5", "99999999999999999999"})
    BOOST_TEST(!parse_layers(wrong).has_value(), "\"" << wrong << '"');
}

BOOST_AUTO_TEST_SUITE_END()
