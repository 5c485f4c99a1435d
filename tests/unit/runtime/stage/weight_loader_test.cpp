// Goal: the drafter's weights are all that its manifest lists and nothing of the backbone's layers,
// in the sizes of the configuration. Method: the tensors that a checkpoint was asked for; random
// checkpoints with another number of blocks, experts and taps; a checkpoint without one tensor.
#include "runtime/stage/weight_loader.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "runtime/model/manifest.hpp"
#include "runtime/stage/model_source.hpp"
#include "tests/support/random_checkpoint.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace cedar;
using nlohmann::json;

namespace {

const std::string golden = CEDAR_TEST_DATA "/golden/";

std::vector<std::string> drafter_names(const model::model_config& config) {
  std::vector<std::string> names;
  for (const model::expected_tensor& tensor : model::manifest(config))
    if (model::in_drafter(tensor)) names.push_back(tensor.name);
  std::ranges::sort(names);
  return names;
}

/// Loads the drafter of a folder and checks which tensors were read.
model::drafter_weights check_reads(const model::model_config& config,
                                   const store::checkpoint& checkpoint) {
  const auto weights = stage::load_drafter(checkpoint, config);
  BOOST_REQUIRE_MESSAGE(weights, (weights ? "" : weights.error().message));
  BOOST_TEST(checkpoint.touched() == drafter_names(config), boost::test_tools::per_element());
  return *weights;
}

void check_sizes(const model::drafter_weights& weights, const model::model_config& config) {
  const model::dspark_config& dspark = config.dspark;
  BOOST_TEST(weights.blocks.size() == dspark.blocks);
  for (const model::layer_weights& block : weights.blocks) {
    BOOST_TEST(block.moe.experts.size() == dspark.routed_experts);
    BOOST_TEST(block.moe.experts_per_token == dspark.experts_per_token);
    BOOST_TEST(block.moe.gate.rows == dspark.routed_experts);
    BOOST_TEST(!block.attention.compressor.has_value());
    BOOST_TEST(!block.engram.has_value());
  }
  BOOST_TEST(weights.main_proj.codes.cols == dspark.target_layers.size() * config.width);
  BOOST_TEST(weights.embedding.rows == config.vocabulary);
  BOOST_TEST(weights.head.rows == config.vocabulary);
  BOOST_TEST(weights.markov_embedding.cols == dspark.markov_rank);
  BOOST_TEST(weights.markov_head.cols == dspark.markov_rank);
  BOOST_TEST(weights.confidence.cols == config.width + dspark.markov_rank);
}

/// A random checkpoint of tiny-12's configuration with another drafter.
struct changed_model {
  test::temporary_folder folder;
  model::model_config config;
  store::checkpoint checkpoint;

  explicit changed_model(const std::function<void(json&)>& change)
      : config(written(folder.path(), change)),
        checkpoint(store::checkpoint::open(folder.path()).value()) {}

  static model::model_config written(const std::filesystem::path& path,
                                     const std::function<void(json&)>& change) {
    test::write_random_checkpoint(path, 1, change);
    return model::parse_config(path).value();
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(drafter_weights)

BOOST_AUTO_TEST_CASE(are_what_the_manifest_gives_the_drafter_and_no_more) {
  for (const char* name : {"tiny-12", "tiny-40", "tiny-vision"}) {
    BOOST_TEST_INFO_SCOPE(name);
    const auto config = model::parse_config(golden + name).value();
    const auto checkpoint = store::checkpoint::open(golden + name).value();
    check_sizes(check_reads(config, checkpoint), config);
  }
}

BOOST_AUTO_TEST_CASE(have_the_sizes_of_the_configuration) {
  const changed_model one([](json& text) {
    text["num_nextn_predict_layers"] = 1;  // the first block is the last one, too
    text["compress_ratios"].erase(text["compress_ratios"].size() - 2);
    text["compress_ratios"].erase(text["compress_ratios"].size() - 1);
    text["dspark_n_routed_experts"] = 7;
    text["dspark_num_experts_per_tok"] = 5;
    text["dspark_target_layer_ids"] = {3, 11};
    text["dspark_markov_rank"] = 13;
  });
  const auto weights = check_reads(one.config, one.checkpoint);
  check_sizes(weights, one.config);
  BOOST_TEST(weights.blocks.size() == 1U);
  BOOST_TEST(weights.main_proj.codes.cols == 2U * one.config.width);
  BOOST_TEST(weights.blocks[0].moe.experts.size() == 7U);
}

BOOST_AUTO_TEST_CASE(of_a_model_without_draft_blocks_are_refused) {
  const changed_model none([](json& text) {
    text["num_nextn_predict_layers"] = 0;
    text["compress_ratios"].erase(text["compress_ratios"].begin() + 12,
                                  text["compress_ratios"].end());
  });
  const auto weights = stage::load_drafter(none.checkpoint, none.config);
  BOOST_REQUIRE(!weights);
  BOOST_TEST((weights.error().code == errc::not_found));
  BOOST_TEST(weights.error().message.find("num_nextn_predict_layers") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(that_are_missing_or_of_another_size_are_named) {
  const auto config = model::parse_config(golden + "tiny-12").value();
  const auto checkpoint = store::checkpoint::open(golden + "tiny-12").value();
  const auto refused = [&](const std::function<void(model::model_config&)>& change) {
    model::model_config other = config;
    change(other);
    const auto weights = stage::load_drafter(checkpoint, other);
    BOOST_REQUIRE(!weights);
    return weights.error();
  };
  const error missing = refused([](model::model_config& c) { c.dspark.blocks = 4; });
  BOOST_TEST((missing.code == errc::not_found));
  BOOST_TEST(missing.message.find("mtp.3.") != std::string::npos);
  const error taps = refused([](model::model_config& c) { c.dspark.target_layers = {1}; });
  BOOST_TEST((taps.code == errc::mismatch));
  BOOST_TEST(taps.message.find("mtp.0.main_proj.weight") != std::string::npos);
  const error rank = refused([](model::model_config& c) { c.dspark.markov_rank = 16; });
  BOOST_TEST(rank.message.find("mtp.2.markov_head.embed.weight") != std::string::npos);
  const error experts = refused([](model::model_config& c) { c.dspark.routed_experts = 5; });
  BOOST_TEST(experts.message.find("mtp.0.ffn.gate.weight") != std::string::npos);
}

// The drafter's host needs the files of its tensors and no other.
BOOST_AUTO_TEST_CASE(can_be_loaded_without_the_files_of_the_backbone) {
  const test::temporary_folder whole;
  for (const auto& file : std::filesystem::directory_iterator(golden + "tiny-40"))
    if (file.is_regular_file()) std::filesystem::copy(file, whole.path());
  const auto config = model::parse_config(whole.path()).value();
  const auto names = drafter_names(config);
  const auto before = store::checkpoint::open(whole.path()).value();
  std::size_t removed = 0;
  for (std::uint32_t i = 0; i < before.files().size(); ++i) {
    const bool read = std::ranges::any_of(
        names, [&](const std::string& name) { return before.find(name)->file == i; });
    if (read) continue;
    std::filesystem::remove(before.files()[i].path());
    ++removed;
  }
  BOOST_TEST(removed == 1U);
  const auto partial = store::checkpoint::open(whole.path()).value();
  check_sizes(check_reads(config, partial), config);
  const auto differences = model::check(model::manifest(config), partial, model::in_drafter);
  BOOST_TEST(differences.ok());
}

BOOST_AUTO_TEST_SUITE_END()
