// Goal: nothing in the model assumes the released sizes, periods or ratios.
// Method: random checkpoints of odd configurations. On both backends, logits are finite and close
// to each other; on the cpu backend, any chunking of a prompt, token-by-token decoding, three
// threads and every instruction set give the same bits. The closeness bound is loose on purpose:
// random weights amplify roundings, and a missing or mixed-up part moves logits by their own size.
#include <hwy/targets.h>
#include <tbb/global_control.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/registry/registry.hpp"
#include "runtime/local/local_engine.hpp"
#include "tests/support/random_checkpoint.hpp"
#include "tests/support/temporary_folder.hpp"

namespace data = boost::unit_test::data;
using namespace cedar;
using nlohmann::json;

namespace {

struct odd_configuration {
  const char* name;
  void (*change)(json&);
};

std::ostream& operator<<(std::ostream& out, const odd_configuration& one) {
  return out << one.name;
}

const std::vector<odd_configuration> configurations{
    {"ratios 3 and 4, decoder first among equals",
     [](json& c) {
       c["compress_ratios"] = {0, 3, 3, 4, 4, 4, 1, 1, 1, 1, 1, 1, 0, 0, 0};
       c["kv_source_layer_ids"] = {1, 3, 6};
       c["index_source_layer_ids"] = {1, 3, 5, 6, 8, 10};
       c["engram_layer_ids"] = {0, 4};
     }},
    {"candidates from the second decoder selection on, no window-only layer",
     [](json& c) {
       c["compress_ratios"] = {2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0};
       c["kv_source_layer_ids"] = {0, 2, 4};
       c["index_source_layer_ids"] = {0, 1, 2, 4, 5, 7, 9, 11};
       c["candidate_source_layer_id"] = 7;
     }},
    {"no candidates, every layer owns",
     [](json& c) {
       c["compress_ratios"] = {0, 0, 1, 2, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0};
       c["kv_source_layer_ids"] = {2, 3, 4, 5, 6, 8};
       c["index_source_layer_ids"] = {2, 3, 4, 5, 6, 8};
       c["candidate_source_layer_id"] = -1;
     }},
    {"output groups that begin inside a scale block",
     [](json& c) {
       c["o_groups"] = 4;
       c["o_lora_rank"] = 24;
     }},
    {"one expert, no clamp, one Sinkhorn round, two streams",
     [](json& c) {
       c["num_experts_per_tok"] = 1;
       c["swiglu_limit"] = 0;
       c["hc_sinkhorn_iters"] = 1;
       c["hc_mult"] = 2;
     }},
    {"no Engram, no YaRN to speak of, one head",
     [](json& c) {
       c["engram_layer_ids"] = json::array();
       c["rope_scaling"]["original_max_position_embeddings"] = 1048576;
       c["num_attention_heads"] = 2;
       c["qk_rope_head_dim"] = 2;
     }},
    {"odd widths and a vocabulary beyond the tokenizer",
     [](json& c) {
       c["vocab_size"] = 531;
       c["hidden_size"] = 160;
       c["moe_intermediate_size"] = 128;
       c["engram_max_ngram_size"] = 3;
       c["engram_n_heads"] = 3;
       c["sliding_window"] = 5;
       c["index_topk"] = 3;
       c["candidate_topk_blocks"] = 3;
       c["candidate_block_size"] = 3;
     }},
};

/// Logits of all rows, prompt in chunks of `chunk` rows.
std::vector<float> run(const std::filesystem::path& folder, const kernels::backend& backend,
                       const std::vector<token_id>& prompt, std::uint32_t chunk) {
  const auto source = stage::model_source::open(folder);
  BOOST_REQUIRE_MESSAGE(source.has_value(), source.error().message);
  const auto engine = local::local_engine::open(**source, backend, {chunk, 1, 512});
  BOOST_REQUIRE_MESSAGE(engine.has_value(), engine.error().message);
  session::generation_request request;
  request.prompt = prompt;
  request.prompt_logits = static_cast<std::uint32_t>(prompt.size());
  request.want_logits = true;
  std::vector<float> logits;
  const auto used = (*engine)->generate(
      {request}, {[&](std::size_t, const session::row_event& row) {
                    logits.insert(logits.end(), row.logits.begin(), row.logits.end());
                  },
                  {}});
  BOOST_REQUIRE_MESSAGE(used.has_value(), used.error().message);
  BOOST_TEST((*engine)->layers().sequences() == 0U);
  BOOST_TEST((*engine)->layers().pages().pages_in_use() == 0U);
  return logits;
}

double rms(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(odd_configurations)

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_DATA_TEST_CASE(run_alike_in_any_chunking, data::make(configurations), one) {
  constexpr std::uint64_t seed = 20261129;
  BOOST_TEST_MESSAGE("seed " << seed);
  const test::temporary_folder folder;
  test::write_random_checkpoint(folder.path(), seed, one.change);
  std::mt19937_64 random(seed);
  std::vector<token_id> prompt(61);
  for (token_id& token : prompt) token = static_cast<token_id>(random() % 500);

  const auto cpu = kernels::make_backend("cpu");
  const auto whole = run(folder.path(), *cpu, prompt, 61);
  for (const float logit : whole) BOOST_REQUIRE(std::isfinite(logit));
  for (const std::uint32_t chunk : {1U, 2U, 7U, 30U})
    BOOST_TEST((run(folder.path(), *cpu, prompt, chunk) == whole), "chunks of " << chunk);

  const auto judged = run(folder.path(), *kernels::make_backend("reference"), prompt, 61);
  std::vector<float> difference(whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) difference[i] = whole[i] - judged[i];
  BOOST_TEST_MESSAGE(one.name << ": logits RMS " << rms(judged) << ", cpu differs by "
                              << rms(difference));
  BOOST_TEST(rms(judged) > 0.01);
  BOOST_TEST(rms(difference) < 0.1 * rms(judged));
}

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_DATA_TEST_CASE(run_alike_on_any_threads_and_instructions, data::make(configurations), one) {
  constexpr std::uint64_t seed = 20261130;
  BOOST_TEST_MESSAGE("seed " << seed);
  const test::temporary_folder folder;
  test::write_random_checkpoint(folder.path(), seed, one.change);
  std::mt19937_64 random(seed);
  std::vector<token_id> prompt(61);
  for (token_id& token : prompt) token = static_cast<token_id>(random() % 500);

  const auto alone = run(folder.path(), *kernels::make_cpu_backend(), prompt, 61);
  // More threads than the machine may have processors, and everything divided that can be.
  const tbb::global_control enough(tbb::global_control::max_allowed_parallelism, 8);
  const auto divided = kernels::make_cpu_backend(3, 1);
  const std::int64_t supported = hwy::SupportedTargets();
  for (const std::int64_t target : {HWY_AVX2, HWY_AVX3, HWY_AVX3_DL}) {
    if ((supported & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    for (const std::uint32_t chunk : {61U, 1U})
      BOOST_TEST((run(folder.path(), *divided, prompt, chunk) == alone),
                 hwy::TargetName(target) << ", chunks of " << chunk);
  }
  hwy::GetChosenTarget().Update(supported);
}

BOOST_AUTO_TEST_SUITE_END()
