// Goal: each step of the rule does what it says, in its order, with its ties, and never leaves
// nothing. Method: small vocabularies by hand; which tokens survive is seen by drawing many times.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "kernels/base/check.hpp"
#include "kernels/ops/selection.hpp"
#include "runtime/model/sampling.hpp"

using namespace cedar;
using namespace cedar::model;
using flow::sampling_options;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

token_id chosen(const std::vector<float>& logits, const sampling_options& options,
                const token_uses& uses = {}, std::uint32_t position = 0) {
  sampling_scratch scratch;
  return choose_token(logits, options, uses, position, scratch);
}

/// Tokens that are ever chosen over 4000 positions.
std::set<token_id> drawn(const std::vector<float>& logits, const sampling_options& options,
                         const token_uses& uses = {}) {
  std::set<token_id> out;
  sampling_scratch scratch;
  for (std::uint32_t position = 0; position < 4000; ++position)
    out.insert(choose_token(logits, options, uses, position, scratch));
  return out;
}

sampling_options hot() {
  sampling_options out;
  out.temperature = 1;
  return out;
}

/// Logits of these probabilities.
std::vector<float> logs(const std::vector<double>& probabilities) {
  std::vector<float> out;
  for (const double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}

using tokens = std::set<token_id>;

}  // namespace

BOOST_TEST_DONT_PRINT_LOG_VALUE(tokens)

BOOST_AUTO_TEST_SUITE(choice)

BOOST_AUTO_TEST_CASE(without_temperature_is_the_arg_max_whatever_seed_and_filters_say) {
  sampling_options options;
  options.top_p = 0.01F;
  options.top_k = 1;
  options.min_p = 1;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    options.seed = seed;
    BOOST_TEST(chosen({1, 3, 2, 3}, options) == 1);
  }
  BOOST_TEST(chosen({-0.0F, 0.0F}, {}) == 0);
  BOOST_TEST(chosen({-infinity, -5}, {}) == 1);
  BOOST_TEST(chosen({-infinity, -infinity}, {}) == 0);
  BOOST_TEST(chosen({7}, {}) == 0);
}

BOOST_AUTO_TEST_CASE(of_tiny_temperature_is_the_arg_max_too) {
  sampling_options options = hot();
  for (const float temperature : {std::numeric_limits<float>::denorm_min(), 1e-6F}) {
    options.temperature = temperature;
    BOOST_TEST((drawn({1, 3, 2, 2.99F}, options) == tokens{1}));
  }
}

BOOST_AUTO_TEST_CASE(repetition_penalty_divides_positive_and_multiplies_negative_logits) {
  sampling_options options;
  options.repetition_penalty = 2;
  const token_uses prompt_only{{0, {1, 0}}};
  BOOST_TEST(chosen({3, 1.4F}, options, prompt_only) == 0);  // 1.5
  BOOST_TEST(chosen({3, 1.6F}, options, prompt_only) == 1);
  BOOST_TEST(chosen({-1, -1.9F}, options, prompt_only) == 1);  // -2
  BOOST_TEST(chosen({-1, -2.1F}, options, prompt_only) == 0);
  BOOST_TEST(chosen({0, -0.1F}, options, prompt_only) == 0);
  // However often it stands there.
  BOOST_TEST(chosen({3, 1.4F}, options, {{0, {9, 8}}}) == 0);
}

BOOST_AUTO_TEST_CASE(frequency_and_presence_penalties_count_the_answer_alone) {
  sampling_options options;
  options.frequency_penalty = 0.5F;
  BOOST_TEST(chosen({3, 2}, options, {{0, {7, 0}}}) == 0);
  BOOST_TEST(chosen({3, 2}, options, {{0, {7, 1}}}) == 0);
  BOOST_TEST(chosen({3, 2}, options, {{0, {7, 2}}}) == 0);  // a tie
  BOOST_TEST(chosen({3, 2}, options, {{0, {7, 3}}}) == 1);
  options = {};
  options.presence_penalty = 1.5F;
  BOOST_TEST(chosen({3, 2}, options, {{0, {7, 0}}}) == 0);
  BOOST_TEST(chosen({3, 2}, options, {{0, {7, 1}}}) == 1);
  BOOST_TEST(chosen({3, 1}, options, {{0, {7, 5}}}) == 0);
  options.presence_penalty = -1.5F;  // a reward
  BOOST_TEST(chosen({2, 3}, options, {{0, {1, 1}}}) == 0);
}

BOOST_AUTO_TEST_CASE(penalties_come_in_order_and_bias_after_them) {
  sampling_options options;
  options.repetition_penalty = 2;
  options.presence_penalty = 1;
  options.frequency_penalty = 1;
  // 8 / 2 - 2 - 1 = 1, and not (8 - 3) / 2 = 2.5.
  const token_uses uses{{0, {2, 2}}};
  BOOST_TEST(chosen({8, 1.1F}, options, uses) == 1);
  BOOST_TEST(chosen({8, 0.9F}, options, uses) == 0);
  // The bias is not divided: 8 / 2 - 3 + 4 = 5, and not (8 + 4) / 2 - 3 = 3.
  options.bias = {{0, 4}};
  BOOST_TEST(chosen({8, 4.9F}, options, uses) == 0);
  BOOST_TEST(chosen({8, 5.1F}, options, uses) == 1);
}

BOOST_AUTO_TEST_CASE(bias_bans_and_forces) {
  sampling_options options = hot();
  options.bias = {{2, 1000}};
  BOOST_TEST((drawn({0, 0, 0, 0}, options) == tokens{2}));
  options.bias = {{2, -1000}};
  BOOST_TEST((drawn({0, 0, 0, 0}, options) == tokens{0, 1, 3}));
}

BOOST_AUTO_TEST_CASE(bias_is_added_before_temperature) {
  // Both tokens are alike after the bias; were it added after T, token 0 would win almost always.
  sampling_options options = hot();
  options.temperature = 0.01F;
  options.bias = {{1, 1}};
  BOOST_TEST((drawn({1, 0}, options) == tokens{0, 1}));
}

BOOST_AUTO_TEST_CASE(top_k_keeps_the_highest_and_the_lower_id_of_equals) {
  sampling_options options = hot();
  options.top_k = 2;
  BOOST_TEST((drawn({1, 2, 1.5F, 0}, options) == tokens{1, 2}));
  BOOST_TEST((drawn({1, 2, 1, 1}, options) == tokens{0, 1}));
  BOOST_TEST((drawn({1, 1, 1, 1}, options) == tokens{0, 1}));
  options.top_k = 1;
  BOOST_TEST((drawn({1, 1, 1, 1}, options) == tokens{0}));
  for (const std::uint32_t all : {0U, 4U, 5U, 4'000'000'000U}) {
    options.top_k = all;
    BOOST_TEST((drawn({1, 1, 1, 1}, options) == tokens{0, 1, 2, 3}));
  }
}

BOOST_AUTO_TEST_CASE(top_p_keeps_the_smallest_set_and_the_lower_id_of_equals) {
  sampling_options options = hot();
  const std::vector<float> logits = logs({0.125, 0.5, 0.25, 0.125});
  const auto kept = [&](float p) {
    options.top_p = p;
    return drawn(logits, options);
  };
  BOOST_TEST((kept(std::numeric_limits<float>::denorm_min()) == tokens{1}));
  BOOST_TEST((kept(0.49F) == tokens{1}));
  BOOST_TEST((kept(0.51F) == tokens{1, 2}));
  BOOST_TEST((kept(0.74F) == tokens{1, 2}));
  BOOST_TEST((kept(0.76F) == tokens{0, 1, 2}));
  BOOST_TEST((kept(0.88F) == tokens{0, 1, 2, 3}));
  BOOST_TEST((kept(1) == tokens{0, 1, 2, 3}));
  options.top_p = 0.5F;  // reached exactly by two of four
  BOOST_TEST((drawn({0, 0, 0, 0}, options) == tokens{0, 1}));
}

BOOST_AUTO_TEST_CASE(min_p_is_relative_to_the_best) {
  sampling_options options = hot();
  const std::vector<float> logits = logs({0.1, 0.4, 0.3, 0.2});
  const auto kept = [&](float m) {
    options.min_p = m;
    return drawn(logits, options);
  };
  BOOST_TEST((kept(0.24F) == tokens{0, 1, 2, 3}));
  BOOST_TEST((kept(0.26F) == tokens{1, 2, 3}));
  BOOST_TEST((kept(0.51F) == tokens{1, 2}));
  BOOST_TEST((kept(0.76F) == tokens{1}));
  BOOST_TEST((kept(1) == tokens{1}));
  options.min_p = 1;  // all equals of the best
  BOOST_TEST((drawn({0, 0, -0.1F}, options) == tokens{0, 1}));
}

BOOST_AUTO_TEST_CASE(temperature_comes_before_top_p_and_min_p) {
  // 0.8, 0.2 at T = 1 become 2/3, 1/3 at T = 2.
  const std::vector<float> logits = logs({0.8, 0.2});
  sampling_options options = hot();
  options.top_p = 0.7F;
  BOOST_TEST((drawn(logits, options) == tokens{0}));
  options.temperature = 2;
  BOOST_TEST((drawn(logits, options) == tokens{0, 1}));
  options = hot();
  options.min_p = 0.4F;
  BOOST_TEST((drawn(logits, options) == tokens{0}));
  options.temperature = 2;
  BOOST_TEST((drawn(logits, options) == tokens{0, 1}));
}

BOOST_AUTO_TEST_CASE(top_p_is_of_what_top_k_left) {
  // Of all, 0.4 and 0.3 are 0.7; of the two that top-k leaves, 0.4 alone is 0.57.
  sampling_options options = hot();
  const std::vector<float> logits = logs({0.4, 0.3, 0.2, 0.1});
  options.top_p = 0.55F;
  BOOST_TEST((drawn(logits, options) == tokens{0, 1}));
  options.top_k = 2;
  BOOST_TEST((drawn(logits, options) == tokens{0}));
}

BOOST_AUTO_TEST_CASE(min_p_is_of_what_top_p_left_and_has_the_same_best) {
  sampling_options options = hot();
  const std::vector<float> logits = logs({0.4, 0.3, 0.2, 0.1});
  options.top_p = 0.95F;
  options.min_p = 0.45F;
  BOOST_TEST((drawn(logits, options) == tokens{0, 1, 2}));
  options.top_p = 0.6F;
  BOOST_TEST((drawn(logits, options) == tokens{0, 1}));
}

BOOST_AUTO_TEST_CASE(penalties_come_before_the_filters) {
  sampling_options options = hot();
  options.top_k = 1;
  options.presence_penalty = 2;
  BOOST_TEST((drawn({3, 2, 0}, options, {{0, {1, 1}}}) == tokens{1}));
}

BOOST_AUTO_TEST_CASE(infinite_logits_exclude_or_win) {
  sampling_options options = hot();
  for (const float p : {1.0F, 0.9F})
    for (const float m : {0.0F, 0.1F})
      for (const std::uint32_t k : {0U, 3U}) {
        options.top_p = p;
        options.min_p = m;
        options.top_k = k;
        BOOST_TEST((drawn({-infinity, 1, -infinity, 1}, options) == tokens{1, 3}));
        BOOST_TEST((drawn({5, infinity, -infinity, 1}, options) == tokens{1}));
        BOOST_TEST((drawn({-infinity, -infinity}, options) == tokens{0}));
      }
}

BOOST_AUTO_TEST_CASE(depends_on_seed_choice_and_position) {
  const std::vector<float> logits(50, 0.0F);
  const auto answer = [&](std::uint64_t seed, std::uint32_t choice) {
    sampling_options options = hot();
    options.seed = seed;
    options.choice = choice;
    std::vector<token_id> out;
    for (std::uint32_t position = 0; position < 30; ++position)
      out.push_back(chosen(logits, options, {}, position));
    return out;
  };
  BOOST_TEST((answer(1, 0) == answer(1, 0)));
  BOOST_TEST((answer(1, 0) != answer(2, 0)));
  BOOST_TEST((answer(1, 0) != answer(1, 1)));
  BOOST_TEST((answer(1, 0) != answer(1 + (1ULL << 32), 0)));
  const std::vector<token_id> one = answer(1, 0);
  BOOST_TEST(std::set(one.begin(), one.end()).size() > 10U);
}

BOOST_AUTO_TEST_CASE(of_nan_or_of_nothing_is_a_defect) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  BOOST_CHECK_EXCEPTION(chosen({1, nan, 2}, hot()), defect, [](const defect& what) {
    return std::string(what.what()).find("logit 1 is NaN") != std::string::npos;
  });
  BOOST_CHECK_THROW(chosen({nan}, {}), defect);
  BOOST_CHECK_THROW(chosen({}, hot()), defect);
}

BOOST_AUTO_TEST_SUITE_END()
