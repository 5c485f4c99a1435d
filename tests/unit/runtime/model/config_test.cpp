// Goal: the released configuration is understood, and every way to get one wrong is named, all at
// once. Method: the released file, and copies of it with one value changed each.
#include "runtime/model/config.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/temporary_folder.hpp"

namespace {

using cedar::errc;
using cedar::model::config_reading;
using nlohmann::json;

const std::filesystem::path models = std::filesystem::path(CEDAR_SOURCE_DIR) / "configs/models";
const std::filesystem::path golden = std::filesystem::path(CEDAR_TEST_DATA) / "golden";

struct released {
  json nested = json::parse(cedar::test::read_file(models / "released/config.json"));
  json flat = json::parse(cedar::test::read_file(models / "released/inference/config.json"));
  json& text = nested["text_config"];

  config_reading read() const {
    return cedar::model::read_config_text({nested.dump(), "config.json"});
  }
  config_reading read_both() const {
    const std::string flat_text = flat.dump();
    return cedar::model::read_config_text(
        {nested.dump(), "config.json"},
        cedar::model::config_text{flat_text, "inference/config.json"});
  }
};

bool has(const std::vector<std::string>& messages, const std::string& part) {
  return std::any_of(messages.begin(), messages.end(), [&](const std::string& message) {
    return message.find(part) != std::string::npos;
  });
}

/// Exactly one error, with `code` and both parts in its message.
void expect_error(const config_reading& reading, errc code, const std::string& part,
                  const std::string& other_part = "") {
  BOOST_TEST(!reading.config.has_value());
  BOOST_TEST((reading.code == code));
  BOOST_TEST_CONTEXT(part) {
    BOOST_TEST_CONTEXT((reading.errors.empty() ? "" : reading.errors.front())) {
      BOOST_TEST(reading.errors.size() == 1U);
      BOOST_TEST(has(reading.errors, part));
      BOOST_TEST(has(reading.errors, other_part));
      BOOST_TEST(has(reading.errors, "config.json"));
    }
  }
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(config, released)

BOOST_AUTO_TEST_CASE(reads_the_released_values) {
  const config_reading reading = cedar::model::read_config(models / "released");
  BOOST_REQUIRE(reading.config.has_value());
  BOOST_TEST(reading.warnings.empty());
  const auto& c = *reading.config;
  BOOST_TEST(c.vocabulary == 129280U);
  BOOST_TEST(c.width == 5120U);
  BOOST_TEST(c.layers == 40U);
  BOOST_TEST(c.heads == 64U);
  BOOST_TEST(c.head_dim == 512U);
  BOOST_TEST(c.rope_dim == 64U);
  BOOST_TEST(c.q_rank == 1280U);
  BOOST_TEST(c.o_groups == 8U);
  BOOST_TEST(c.o_rank == 1024U);
  BOOST_TEST(c.window == 128U);
  BOOST_TEST(c.rms_epsilon == 1e-20F);
  BOOST_TEST(c.rope_theta == 10000.0F);
  BOOST_TEST(c.compress_rope_theta == 160000.0F);
  BOOST_TEST(c.yarn.factor == 16.0F);
  BOOST_TEST(c.yarn.beta_fast == 32.0F);
  BOOST_TEST(c.yarn.beta_slow == 1.0F);
  BOOST_TEST(c.yarn.original_positions == 65536U);
  BOOST_TEST(c.max_positions == 1048576U);
  BOOST_TEST(c.compress_ratios.size() == 43U);
  BOOST_TEST((c.kv_sources == std::vector<std::uint32_t>{2, 8, 14, 20}));
  BOOST_TEST((c.index_sources == std::vector<std::uint32_t>{2, 8, 14, 20, 24, 28, 32, 36}));
  BOOST_TEST(c.index_heads == 32U);
  BOOST_TEST(c.index_head_dim == 128U);
  BOOST_TEST(c.index_topk == 512U);
  BOOST_TEST(c.candidate_source.value() == 20U);
  BOOST_TEST(c.candidate_blocks == 2048U);
  BOOST_TEST(c.candidate_block_size == 8U);
  BOOST_TEST(c.routed_experts == 384U);
  BOOST_TEST(c.experts_per_token == 6U);
  BOOST_TEST(c.expert_inner == 2304U);
  BOOST_TEST(c.route_scale == 1.5F);
  BOOST_TEST(c.normalize_topk);
  BOOST_TEST(c.swiglu_limit == 10.0F);
  BOOST_TEST(c.streams == 4U);
  BOOST_TEST(c.sinkhorn_iterations == 20U);
  BOOST_TEST(c.hc_epsilon == 1e-6F);
  BOOST_TEST((c.engram.layers == std::vector<std::uint32_t>{1, 14}));
  BOOST_TEST((c.engram.rows == std::vector<std::uint64_t>{384006168, 384016682}));
  BOOST_TEST(c.engram_columns() == 24U);
  BOOST_TEST(c.engram_lookback() == 3U);
  BOOST_TEST(c.engram.head_dim == 256U);
  BOOST_TEST(c.engram.bucket_start == 16000000U);
  BOOST_TEST(c.engram.pad_token == 2);
  BOOST_TEST(c.engram.compressed_vocabulary == 99092U);
  BOOST_TEST(c.dspark.blocks == 3U);
  BOOST_TEST(c.dspark.block_size == 5U);
  BOOST_TEST(c.dspark.noise_token == 128799);
  BOOST_TEST((c.dspark.target_layers == std::vector<std::uint32_t>{37, 38, 39}));
  BOOST_TEST(c.dspark.markov_rank == 256U);
  BOOST_TEST(c.dspark.routed_experts == 128U);
  BOOST_TEST(c.dspark.experts_per_token == 3U);
  BOOST_TEST(c.vision.layers == 32U);
  BOOST_TEST(c.vision.width == 1024U);
  BOOST_TEST(c.vision.inner == 2816U);
  BOOST_TEST(!c.vision.max_wh_ratio.has_value());
  BOOST_TEST(c.bos_token == 0);
  BOOST_TEST(c.eos_tokens == (std::vector{1}), boost::test_tools::per_element());
  BOOST_TEST(c.pad_token == 2);
  BOOST_TEST(c.image_token == 129264);
}

BOOST_AUTO_TEST_CASE(reads_the_golden_and_the_trained_configurations) {
  for (const auto& folder : {golden / "tiny-12", golden / "tiny-40", golden / "tiny-vision",
                             models / "cedar-tiny", models / "cedar-tiny/config.json"}) {
    const config_reading reading = cedar::model::read_config(folder);
    BOOST_TEST_CONTEXT(folder << (reading.errors.empty() ? "" : reading.errors.front())) {
      BOOST_TEST(reading.config.has_value());
      BOOST_TEST(reading.warnings.empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(missing_files_are_named) {
  const auto none = cedar::model::parse_config(models / "no-such");
  BOOST_REQUIRE(!none.has_value());
  BOOST_TEST((none.error().code == errc::not_found));
  const cedar::test::temporary_folder folder;
  const auto empty = cedar::model::parse_config(folder.path());
  BOOST_REQUIRE(!empty.has_value());
  BOOST_TEST((empty.error().code == errc::not_found));
  BOOST_TEST(empty.error().message.find("config.json") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(every_required_key_is_missed) {
  std::size_t required = 0;
  const json all = text;
  for (const auto& [key, value] : all.items()) {
    json& changed = text;
    changed.erase(key);
    const config_reading reading = read();
    changed[key] = value;
    const bool optional = key == "attention_dropout" || key == "initializer_range" ||
                          key == "use_cache" || key == "rope_scaling";
    BOOST_TEST_CONTEXT(key) {
      BOOST_TEST(reading.config.has_value() == optional);
      if (!optional) BOOST_TEST(has(reading.errors, "text_config." + key + " is missing"));
      if (!optional) BOOST_TEST(reading.errors.size() == 1U);
    }
    required += !optional;
  }
  BOOST_TEST(required > 50U);
}

BOOST_AUTO_TEST_CASE(no_key_accepts_another_type) {
  const json all = text;
  for (const auto& [key, value] : all.items()) {
    if (key == "attention_dropout" || key == "initializer_range" || key == "use_cache") continue;
    for (const json& wrong : {json("text"), json(-7), json(json::array({"x"})), json(true)}) {
      if (wrong.type() == value.type() && !wrong.is_string()) continue;
      text[key] = wrong;
      const config_reading reading = read();
      text[key] = value;
      BOOST_TEST_CONTEXT(key << " = " << wrong) {
        BOOST_TEST(!reading.config.has_value());
        BOOST_TEST(has(reading.errors, "text_config." + key));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(all_problems_are_reported_at_once) {
  text.erase("hidden_size");
  text["head_dim"] = "wide";
  text["moe_intermediate_size"] = 2300;
  nested["quantization_config"]["quant_method"] = "int8";
  const config_reading reading = read();
  BOOST_TEST(reading.errors.size() == 4U);
  BOOST_TEST(has(reading.errors, "text_config.hidden_size is missing"));
  BOOST_TEST(has(reading.errors, "text_config.head_dim is \"wide\""));
  BOOST_TEST(has(reading.errors, "moe_intermediate_size 2300"));
  BOOST_TEST(has(reading.errors, "quantization_config.quant_method is \"int8\""));
}

BOOST_AUTO_TEST_CASE(unknown_keys_are_warnings) {
  nested["torch_dtype"] = "bfloat16";
  text["rope_scaling"]["mscale"] = 1;
  flat["n_hash_layers"] = 0;
  const config_reading reading = read_both();
  BOOST_TEST(reading.config.has_value());
  BOOST_TEST(reading.warnings.size() == 3U);
  BOOST_TEST(has(reading.warnings, "config.json: torch_dtype"));
  BOOST_TEST(has(reading.warnings, "text_config.rope_scaling.mscale"));
  BOOST_TEST(has(reading.warnings, "inference/config.json: n_hash_layers"));
}

BOOST_AUTO_TEST_CASE(what_the_release_omits_has_its_default) {
  nested.erase("eos_token_id");
  text["gate_temp"] = 1.0;
  BOOST_REQUIRE(read().config.has_value());
  BOOST_TEST(read().config->eos_tokens == (std::vector{1}), boost::test_tools::per_element());
  text["gate_temp"] = 2;
  expect_error(read(), errc::mismatch, "gate_temp is 2");
}

BOOST_AUTO_TEST_CASE(other_number_formats_are_refused) {
  nested["dtype"] = "float16";
  expect_error(read(), errc::mismatch, "dtype is \"float16\"");
  nested["dtype"] = "bfloat16";
  json& quantization = nested["quantization_config"];
  quantization["weight_block_size"] = {128, 128};
  expect_error(read(), errc::mismatch, "weight_block_size is [128,128]");
  quantization["weight_block_size"] = {32, 32};
  quantization["expert_dtype"] = "fp8";
  expect_error(read(), errc::mismatch, "expert_dtype");
  nested.erase("quantization_config");
  expect_error(read(), errc::malformed, "quantization_config is missing");
}

BOOST_AUTO_TEST_CASE(a_configuration_without_text_part_has_one_error) {
  nested.erase("text_config");
  expect_error(read(), errc::malformed, "text_config is missing");
  nested["text_config"] = 5;
  expect_error(read(), errc::malformed, "text_config must be an object");
  BOOST_TEST(!cedar::model::read_config_text({"[]", "config.json"}).config.has_value());
  BOOST_TEST(!cedar::model::read_config_text({"{", "config.json"}).config.has_value());
}

BOOST_AUTO_TEST_CASE(the_flat_configuration_must_agree) {
  BOOST_TEST(read_both().config.has_value());
  const json all = flat;
  for (const auto& [key, value] : all.items()) {
    flat[key] = "other";
    expect_error(read_both(), errc::mismatch, "inference/config.json: " + key + " is \"other\"",
                 " is " + value.dump().substr(0, 100));
    flat[key] = value;
  }
  flat["dim"] = 4096;
  expect_error(read_both(), errc::mismatch, "config.json: text_config.hidden_size is 5120",
               "inference/config.json: dim is 4096");
  flat["dim"] = 5120.0;
  BOOST_TEST(read_both().config.has_value());
  flat["gate_temp"] = 2;
  expect_error(read_both(), errc::mismatch, "gate_temp");
}

BOOST_AUTO_TEST_CASE(a_flat_configuration_beside_the_file_is_found) {
  const cedar::test::temporary_folder folder;
  folder.write("config.json", nested.dump());
  BOOST_TEST(cedar::model::parse_config(folder.path()).has_value());
  flat["n_heads"] = 32;
  folder.write("inference/config.json", flat.dump());
  for (const auto& path : {folder.path(), folder.path() / "config.json"}) {
    const auto parsed = cedar::model::parse_config(path);
    BOOST_REQUIRE(!parsed.has_value());
    BOOST_TEST((parsed.error().code == errc::mismatch));
  }
  folder.write("inference/config.json", "{");
  BOOST_TEST((cedar::model::parse_config(folder.path()).error().code == errc::malformed));
}

BOOST_AUTO_TEST_CASE(sizes_divide_into_quantisation_groups) {
  for (const char* key : {"hidden_size", "moe_intermediate_size", "q_lora_rank", "head_dim",
                          "index_head_dim", "engram_head_dim"}) {
    const json value = text[key];
    text[key] = value.get<int>() + 8;
    BOOST_TEST(
        has(read().errors, std::string(key) + " " + text[key].dump() + " must be divisible"));
    text[key] = value;
  }
  text["o_groups"] = 1;
  text["o_lora_rank"] = 48;
  expect_error(read(), errc::mismatch, "o_groups * o_lora_rank = 48");
}

BOOST_AUTO_TEST_CASE(rotated_part_fits_both_heads) {
  text["qk_rope_head_dim"] = 63;
  expect_error(read(), errc::mismatch, "qk_rope_head_dim 63 must be even");
  text["qk_rope_head_dim"] = 130;
  expect_error(read(), errc::mismatch, "index_head_dim 128");
  text["index_head_dim"] = 1024;
  text["qk_rope_head_dim"] = 514;
  expect_error(read(), errc::mismatch, "head_dim 512");
}

BOOST_AUTO_TEST_CASE(heads_divide_into_output_groups) {
  text["o_groups"] = 7;
  text["o_lora_rank"] = 32;
  expect_error(read(), errc::mismatch, "divisible by o_groups 7");
  text["o_groups"] = 0;
  BOOST_TEST(has(read().errors, "o_groups is 0"));
}

BOOST_AUTO_TEST_CASE(ratios_cover_layers_and_draft_blocks) {
  text["num_nextn_predict_layers"] = 2;
  expect_error(read(), errc::mismatch, "compress_ratios has 43 entries", "is 42");
  text["num_nextn_predict_layers"] = 3;
  text["compress_ratios"][41] = 1;
  expect_error(read(), errc::mismatch, "DSpark");
}

BOOST_AUTO_TEST_CASE(sources_are_ordered_and_compressed) {
  text["kv_source_layer_ids"] = {2, 14, 8, 20};
  BOOST_TEST(has(read().errors, "kv_source_layer_ids must be ascending"));
  text["kv_source_layer_ids"] = {2, 8, 8, 14, 20};
  BOOST_TEST(has(read().errors, "kv_source_layer_ids must be ascending"));
  text["kv_source_layer_ids"] = {2, 8, 14, 20};
  text["index_source_layer_ids"] = {2, 8, 14, 20, 24, 28, 32, 36, 40};
  BOOST_TEST(has(read().errors, "below num_hidden_layers 40"));
  text["index_source_layer_ids"] = {0, 2, 8, 14, 20, 24, 28, 32, 36};
  expect_error(read(), errc::mismatch, "index_source_layer_ids has 0, whose entry");
  text["index_source_layer_ids"] = {2, 8, 20, 24, 28, 32, 36};
  expect_error(read(), errc::mismatch, "kv_source_layer_ids has 14");
}

BOOST_AUTO_TEST_CASE(readers_have_their_owners_ratio) {
  text["compress_ratios"][5] = 1;
  expect_error(read(), errc::mismatch, "layer 5 ratio 1", "layer 2, whose ratio is 2");
  text["compress_ratios"][5] = 2;
  text["compress_ratios"][1] = 2;
  expect_error(read(), errc::mismatch, "layer 1 ratio 2");
}

BOOST_AUTO_TEST_CASE(candidates_come_from_an_index_source_and_stay_with_its_owner) {
  text["candidate_source_layer_id"] = 21;
  expect_error(read(), errc::mismatch, "candidate_source_layer_id 21 is not");
  text["candidate_source_layer_id"] = 14;
  BOOST_TEST(has(read().errors, "index_source_layer_ids has 20 after"));
  text["candidate_source_layer_id"] = 24;
  BOOST_TEST(read().config.has_value());
  text["candidate_source_layer_id"] = -1;
  BOOST_REQUIRE(read().config.has_value());
  BOOST_TEST(!read().config->candidate_source.has_value());
}

BOOST_AUTO_TEST_CASE(the_candidate_pool_fills_a_selection) {
  text["candidate_topk_blocks"] = 64;  // 63 * 8 + 1 = 505
  expect_error(read(), errc::mismatch, "= 505 must reach index_topk 512");
  text["candidate_topk_blocks"] = 65;
  BOOST_TEST(read().config.has_value());
}

BOOST_AUTO_TEST_CASE(experts_suffice) {
  text["num_experts_per_tok"] = 385;
  expect_error(read(), errc::mismatch, "num_experts_per_tok 385");
  text["num_experts_per_tok"] = 6;
  text["n_shared_experts"] = 2;
  expect_error(read(), errc::mismatch, "n_shared_experts is 2");
  text["n_shared_experts"] = 1;
  text["dspark_num_experts_per_tok"] = 129;
  expect_error(read(), errc::mismatch, "dspark_num_experts_per_tok 129");
}

BOOST_AUTO_TEST_CASE(special_tokens_are_in_the_vocabulary) {
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id", "image_token_id"}) {
    const json value = nested[key];
    nested[key] = 129280;
    expect_error(read(), errc::mismatch, std::string(key) + " 129280 must be below");
    nested[key] = value;
  }
  for (const char* key : {"engram_pad_token_id", "dspark_noise_token_id"}) {
    const json value = text[key];
    text[key] = 129280;
    expect_error(read(), errc::mismatch, std::string(key) + " 129280 must be below");
    text[key] = value;
  }
}

BOOST_AUTO_TEST_CASE(several_tokens_may_end_an_answer) {
  nested["eos_token_id"] = {1, 128803};
  BOOST_REQUIRE(read().config.has_value());
  BOOST_TEST(read().config->eos_tokens == (std::vector{1, 128803}),
             boost::test_tools::per_element());
  nested["eos_token_id"] = {1, 129280};
  expect_error(read(), errc::mismatch, "eos_token_id 129280 must be below");
  for (const json& wrong : {json::array(), json("1"), json(-1), json(1.5)}) {
    nested["eos_token_id"] = wrong;
    expect_error(read(), errc::malformed, "eos_token_id is ");
  }
}

BOOST_AUTO_TEST_CASE(engram_tables_have_a_size_each_and_room_for_their_columns) {
  text["engram_num_embeddings"] = {384006168};
  expect_error(read(), errc::mismatch, "engram_num_embeddings has 1 entries");
  text["engram_num_embeddings"] = {384006168, 383999999};
  expect_error(read(), errc::mismatch, "383999999 is less than 24 columns of engram_vocab_size");
  text["engram_num_embeddings"] = json::array();
  text["engram_layer_ids"] = json::array();
  BOOST_TEST(read().config.has_value());
}

BOOST_AUTO_TEST_CASE(draft_blocks_tap_layers_of_the_model) {
  text["dspark_target_layer_ids"] = {38, 39, 40};
  expect_error(read(), errc::mismatch, "dspark_target_layer_ids");
  text["dspark_target_layer_ids"] = json::array();
  expect_error(read(), errc::mismatch, "must not be empty");
}

BOOST_AUTO_TEST_CASE(vision_is_optional_but_whole) {
  nested["vision_config"]["num_attention_heads"] = 24;
  expect_error(read(), errc::mismatch, "vision_config: hidden_size 1024");
  nested["vision_config"]["num_attention_heads"] = 0;
  expect_error(read(), errc::malformed, "vision_config.num_attention_heads is 0");
  nested["vision_config"]["num_attention_heads"] = 16;
  nested["vision_config"]["max_wh_ratio"] = 2.5;
  BOOST_TEST(read().config->vision.max_wh_ratio.value() == 2.5);
  nested.erase("image_token_id");
  expect_error(read(), errc::mismatch, "image_token_id is missing");
  nested.erase("vision_config");
  BOOST_REQUIRE(read().config.has_value());
  BOOST_TEST(read().config->vision.layers == 0U);
}

BOOST_AUTO_TEST_CASE(without_scaling_positions_are_plain) {
  text["rope_scaling"] = nullptr;
  BOOST_REQUIRE(read().config.has_value());
  BOOST_TEST(read().config->yarn.original_positions == 0U);
  text["rope_scaling"] = {{"rope_type", "linear"}};
  BOOST_TEST(has(read().errors, "rope_scaling.rope_type is \"linear\""));
}

BOOST_AUTO_TEST_CASE(canonical_texts_differ_with_every_value) {
  const std::string before = canonical_text(*read().config);
  BOOST_TEST(canonical_text(*read().config) == before);
  const std::vector<std::pair<const char*, json>> changes{
      {"vocab_size", 129281},       {"rms_norm_eps", 1e-19},  {"rope_theta", 10001},
      {"swiglu_limit", 10.000001},  {"hc_eps", 1.0000001e-6}, {"norm_topk_prob", false},
      {"index_topk", 511},          {"index_n_heads", 31},    {"dspark_block_size", 4},
      {"candidate_block_size", 16}, {"sliding_window", 127},  {"routed_scaling_factor", 2}};
  for (const auto& [key, value] : changes) {
    const json old = text[key];
    text[key] = value;
    BOOST_TEST_CONTEXT(key) {
      BOOST_REQUIRE(read().config.has_value());
      BOOST_TEST(canonical_text(*read().config) != before);
    }
    text[key] = old;
  }
}

BOOST_AUTO_TEST_SUITE_END()
