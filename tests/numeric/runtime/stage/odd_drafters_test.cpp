// Goal: nothing in the drafter assumes the released numbers of blocks, positions, experts, taps or
// streams. Method: random checkpoints of odd configurations, random taps. Both backends' logits are
// much closer to each other than to those of other taps; on the cpu backend a draft has the same
// bits alone and among others, with rows one by one, on three threads and with every instruction
// set.
#include <hwy/targets.h>
#include <tbb/global_control.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/registry/registry.hpp"
#include "runtime/stage/model_source.hpp"
#include "tests/support/random_checkpoint.hpp"
#include "tests/support/temporary_folder.hpp"

namespace data = boost::unit_test::data;
using namespace cedar;
using kernels::bf16;
using nlohmann::json;

namespace {

constexpr std::uint32_t rows_count = 37;

struct odd_drafter {
  const char* name;
  void (*change)(json&);
};

std::ostream& operator<<(std::ostream& out, const odd_drafter& one) {
  return out << one.name;
}

void set_blocks(json& c, std::size_t blocks) {
  c["num_nextn_predict_layers"] = blocks;
  json ratios = json::array();
  for (std::size_t i = 0; i < 12; ++i) ratios.push_back(c["compress_ratios"][i]);
  for (std::size_t i = 0; i < blocks; ++i) ratios.push_back(0);
  c["compress_ratios"] = ratios;
}

const std::vector<odd_drafter> drafters{
    {"one block of one position, one expert, one tap",
     [](json& c) {
       set_blocks(c, 1);
       c["dspark_block_size"] = 1;
       c["dspark_n_routed_experts"] = 1;
       c["dspark_num_experts_per_tok"] = 1;
       c["dspark_target_layer_ids"] = {11};
     }},
    {"five blocks of eleven positions, more experts than the backbone",
     [](json& c) {
       set_blocks(c, 5);
       c["dspark_block_size"] = 11;
       c["dspark_n_routed_experts"] = 19;
       c["dspark_num_experts_per_tok"] = 7;
       c["dspark_target_layer_ids"] = {6, 7, 9, 10, 11};
     }},
    {"odd rank, two streams, a block longer than the window",
     [](json& c) {
       c["dspark_markov_rank"] = 13;
       c["hc_mult"] = 2;
       c["sliding_window"] = 3;
     }},
    {"odd widths and vocabulary",
     [](json& c) {
       c["vocab_size"] = 531;
       c["hidden_size"] = 160;
       c["moe_intermediate_size"] = 128;
       c["o_groups"] = 4;
       c["o_lora_rank"] = 24;
     }},
};

struct drafted {
  std::vector<model::draft_token> tokens;
  std::vector<float> logits;

  friend bool operator==(const drafted&, const drafted&) = default;
};

/// Taps of `requests` requests of rows_count rows.
std::vector<std::vector<bf16>> random_taps(std::size_t requests, std::size_t width,
                                           std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<bf16>> out(requests, std::vector<bf16>(rows_count * width));
  for (auto& taps : out)
    for (bf16& value : taps)
      value = kernels::to_bf16(static_cast<float>(random() % 4001) / 1000.0F - 2.0F);
  return out;
}

/// Drafts of requests that come together, `chunk` rows a step; tokens are a fixed chain, so that
/// both backends' rows can be compared.
std::vector<drafted> run(const stage::model_source& source, const kernels::backend& backend,
                         const std::vector<std::vector<bf16>>& taps, std::uint32_t chunk) {
  const model::model_config& config = source.config();
  const auto drafter = source.make_drafter(backend, static_cast<std::uint32_t>(taps.size()));
  BOOST_REQUIRE_MESSAGE(drafter, (drafter ? "" : drafter.error().message));
  const std::size_t width = (*drafter)->tap_width();
  std::uint64_t step = 0;
  for (std::uint32_t first = 0; first < rows_count; first += chunk) {
    std::vector<flow::row_span> spans;
    std::vector<bf16> rows;
    for (std::size_t i = 0; i < taps.size(); ++i) {
      const std::uint32_t count = std::min(chunk, rows_count - first);
      spans.push_back({request_id{i}, first, count, count});
      const auto end = taps[i].begin() + static_cast<long>((first + count) * width);
      rows.insert(rows.end(),
                  end - static_cast<long>(stage::tapped_rows(spans.back(), config) * width), end);
    }
    const auto extended =
        (*drafter)->extend(step_id{++step}, spans, {rows.data(), rows.size() / width, width});
    BOOST_REQUIRE_MESSAGE(extended, (extended ? "" : extended.error().message));
  }
  std::vector<flow::draft_order> orders;
  for (std::size_t i = 0; i < taps.size(); ++i) orders.push_back({request_id{i}, 11, rows_count, 1});
  std::vector<drafted> out(taps.size());
  const auto drafts = (*drafter)->run(
      orders, [&](std::size_t index, std::uint32_t position, std::span<const float> logits) {
        out[index].logits.insert(out[index].logits.end(), logits.begin(), logits.end());
        return static_cast<token_id>((position * 31 + 7) % config.vocabulary);
      });
  BOOST_REQUIRE_MESSAGE(drafts, (drafts ? "" : drafts.error().message));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].tokens = (*drafts)[i].tokens;
    BOOST_TEST(out[i].tokens.size() == config.dspark.block_size);
  }
  return out;
}

double rms_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return std::sqrt(sum / static_cast<double>(a.size()));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(odd_drafters)

BOOST_DATA_TEST_CASE(draft_alike, data::make(drafters), one) {
  constexpr std::uint64_t seed = 20261201;
  BOOST_TEST_MESSAGE("seed " << seed);
  const test::temporary_folder folder;
  test::write_random_checkpoint(folder.path(), seed, one.change);
  const auto source = stage::model_source::open(folder.path());
  BOOST_REQUIRE_MESSAGE(source, (source ? "" : source.error().message));
  const model::model_config& config = (*source)->config();
  const auto taps = random_taps(3, config.dspark.target_layers.size() * config.width, seed);

  const auto cpu = kernels::make_cpu_backend();
  const auto together = run(**source, *cpu, taps, rows_count);
  for (std::size_t i = 0; i < taps.size(); ++i)
    BOOST_TEST((run(**source, *cpu, {taps[i]}, rows_count).front() == together[i]));
  BOOST_TEST((run(**source, *cpu, taps, 1) == together));

  const auto judged = run(**source, *kernels::make_backend("reference"), taps, rows_count);
  const double influence = rms_difference(judged[0].logits, judged[1].logits);
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const double difference = rms_difference(together[i].logits, judged[i].logits);
    BOOST_TEST_MESSAGE(one.name << ": other taps move logits by " << influence
                                << ", cpu differs by " << difference);
    BOOST_TEST(std::isfinite(difference));
    BOOST_TEST(difference < 0.1 * influence);
  }

  const tbb::global_control enough(tbb::global_control::max_allowed_parallelism, 8);
  const auto divided = kernels::make_cpu_backend(3, 1);
  const std::int64_t supported = hwy::SupportedTargets();
  for (const std::int64_t target : {HWY_AVX2, HWY_AVX3, HWY_AVX3_DL}) {
    if ((supported & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    BOOST_TEST((run(**source, *divided, taps, 5) == together), hwy::TargetName(target));
  }
  hwy::GetChosenTarget().Update(supported);
}

BOOST_AUTO_TEST_SUITE_END()
