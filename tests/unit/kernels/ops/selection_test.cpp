// Goal: the one tie rule of every choice. Method: small cases written out, and random scores with
// many ties against a stable sort.
#include "kernels/ops/selection.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "kernels/base/buffer.hpp"
#include "kernels/base/check.hpp"

namespace {

using namespace cedar::kernels;
using positions = std::vector<std::uint32_t>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::vector<bf16> scores_of(const std::vector<float>& values) {
  std::vector<bf16> scores;
  for (const float value : values) scores.push_back(to_bf16(value));
  return scores;
}

positions top_k(const std::vector<float>& values, std::size_t k) {
  positions out{99};  // what was there before is dropped
  select_top_k(scores_of(values), k, out);
  return out;
}

candidate_pool candidates(const std::vector<float>& values, std::uint32_t size, std::size_t count) {
  candidate_pool pool;
  select_candidates(scores_of(values), size, count, pool);
  return pool;
}

/// The rule itself, by a stable sort of the positions.
positions sorted_top_k(const std::vector<bf16>& scores, const positions& eligible, std::size_t k) {
  positions order = eligible;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return to_float(scores[a]) > to_float(scores[b]);
  });
  order.resize(std::min(k, order.size()));
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<bf16> random_scores(std::mt19937& random, std::size_t count) {
  // Few distinct values, both signs, both zeros, both infinities.
  const std::vector<float> values = {-infinity, -2,     -1,   -0.5F, -0.0F,
                                     0.0F,      1e-40F, 0.5F, 1,     infinity};
  std::vector<bf16> scores(count);
  for (bf16& score : scores) score = to_bf16(values[random() % values.size()]);
  return scores;
}

std::vector<std::int32_t> experts_of(std::vector<float> scores, std::vector<float> bias,
                                     std::size_t k) {
  std::vector<std::int32_t> experts(k);
  select_experts({scores.data(), 1, scores.size()}, bias, {}, {}, {experts.data(), 1, k});
  return experts;
}

std::vector<float> weights_of(std::vector<float> scores, std::vector<std::int32_t> experts,
                              bool normalize, float scale) {
  std::vector<float> weights(experts.size());
  route_weights({scores.data(), 1, scores.size()}, {experts.data(), 1, experts.size()}, normalize,
                scale, {weights.data(), 1, weights.size()});
  return weights;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(top_k_selection)

BOOST_AUTO_TEST_CASE(chooses_the_highest_and_returns_them_by_position) {
  BOOST_TEST(top_k({1, 9, -3, 7, 8}, 3) == (positions{1, 3, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(gives_ties_to_the_lower_position) {
  BOOST_TEST(top_k({2, 5, 5, 5, 9}, 3) == (positions{1, 2, 4}), boost::test_tools::per_element());
  BOOST_TEST(top_k({0, 0, 0, 0}, 2) == (positions{0, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(treats_both_zeros_as_equal) {
  BOOST_TEST(top_k({-0.0F, 0.0F, -1}, 1) == positions{0}, boost::test_tools::per_element());
  BOOST_TEST(top_k({0.0F, -0.0F, -1}, 1) == positions{0}, boost::test_tools::per_element());
  BOOST_TEST(top_k({-1, -0.0F, 0.0F}, 1) == positions{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(orders_infinities_and_the_smallest_numbers) {
  BOOST_TEST(top_k({-infinity, infinity, 3e38F}, 1) == positions{1},
             boost::test_tools::per_element());
  BOOST_TEST(top_k({-infinity, -3e38F}, 1) == positions{1}, boost::test_tools::per_element());
  BOOST_TEST(top_k({0, 1e-40F, -1e-40F}, 1) == positions{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(returns_everything_when_k_exceeds_the_number_of_scores) {
  BOOST_TEST(top_k({3, 1, 2}, 7) == (positions{0, 1, 2}), boost::test_tools::per_element());
  BOOST_TEST(top_k({3, 1, 2}, 3) == (positions{0, 1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(returns_nothing_for_no_scores_or_k_0) {
  BOOST_TEST(top_k({}, 4).empty());
  BOOST_TEST(top_k({1, 2}, 0).empty());
}

BOOST_AUTO_TEST_CASE(refuses_nan_of_either_sign_wherever_it_stands) {
  for (const float bad : {not_a_number, -not_a_number})
    for (const std::size_t at : {0U, 1U, 2U}) {
      std::vector<float> values = {5, 6, 7};
      values[at] = bad;
      BOOST_CHECK_THROW(top_k(values, 1), cedar::defect);
    }
}

BOOST_AUTO_TEST_CASE(agrees_with_a_stable_sort_on_random_ties) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::vector<bf16> scores = random_scores(random, random() % 70);
    const std::size_t k = random() % 75;
    positions all(scores.size());
    std::iota(all.begin(), all.end(), 0U);
    positions out;
    select_top_k(scores, k, out);
    BOOST_TEST(out == sorted_top_k(scores, all, k), boost::test_tools::per_element());
  }
}

/// Long enough that the buffer is cut many times: random, rising, falling and constant scores.
BOOST_AUTO_TEST_CASE(agrees_with_a_stable_sort_on_long_rows) {
  std::mt19937 random(3);
  for (const std::size_t count : {999U, 4096U, 20000U})
    for (const std::size_t k : {1U, 7U, 64U, 512U, 3000U})
      for (int order = 0; order < 4; ++order) {
        std::vector<bf16> scores(count);
        for (std::size_t i = 0; i < count; ++i) {
          const float rising = static_cast<float>(i) - 500;
          const float values[] = {static_cast<float>(random() % 60000) - 3e4F, rising, -rising, 1};
          scores[i] = to_bf16(values[order]);
        }
        positions all(count);
        std::iota(all.begin(), all.end(), 0U);
        positions out;
        select_top_k(scores, k, out);
        BOOST_TEST((out == sorted_top_k(scores, all, k)));
      }
}

BOOST_AUTO_TEST_CASE(names_the_position_of_a_nan_far_into_a_row) {
  for (const unsigned bits : {0x7f81U, 0xff81U, 0x7fffU, 0xffc0U}) {
    std::vector<bf16> scores(5000, to_bf16(-1));
    scores[4321].bits = static_cast<std::uint16_t>(bits);
    positions out;
    BOOST_CHECK_EXCEPTION(
        select_top_k(scores, 3, out), cedar::defect, [](const cedar::defect& error) {
          return std::string(error.what()).find("position 4321") != std::string::npos;
        });
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(candidate_selection)

BOOST_AUTO_TEST_CASE(scores_a_block_by_its_best_position) {
  const candidate_pool pool = candidates({1, 1, 9, 0, 4, 4, 0, 0}, 2, 2);
  BOOST_TEST(pool.block_size == 2U);
  BOOST_TEST(pool.blocks == (positions{1, 3}),
             boost::test_tools::per_element());  // 3 is the newest
}

BOOST_AUTO_TEST_CASE(keeps_the_newest_block_even_against_infinity) {
  const candidate_pool pool = candidates({infinity, infinity, infinity, -infinity}, 1, 2);
  BOOST_TEST(pool.blocks == (positions{0, 3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(counts_a_partly_filled_block_as_the_newest) {
  BOOST_TEST(candidates({5, 5, 5, 5, 5, 5, 5, 5, -9}, 4, 1).blocks == positions{2},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(gives_ties_to_the_lower_block) {
  BOOST_TEST(candidates({1, 0, 0, 1, 1, 1, 0, 0}, 2, 3).blocks == (positions{0, 1, 3}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(keeps_every_block_when_there_are_fewer_than_asked_for) {
  BOOST_TEST(candidates({1, 2, 3, 4, 5}, 2, 9).blocks == (positions{0, 1, 2}),
             boost::test_tools::per_element());
  BOOST_TEST(candidates({}, 2, 9).blocks.empty());
}

/// Against blocks whose scores are computed one by one.
BOOST_AUTO_TEST_CASE(agrees_with_a_stable_sort_of_many_blocks) {
  std::mt19937 random(4);
  for (const std::uint32_t size : {1U, 3U, 8U, 64U, 100U})
    for (const std::size_t blocks_count : {1U, 5U, 200U}) {
      std::vector<bf16> scores(9001);
      for (bf16& score : scores) score = to_bf16(static_cast<float>(random() % 40000) - 2e4F);
      std::vector<bf16> highest;
      for (std::size_t first = 0; first < scores.size(); first += size) {
        float best = -infinity;
        for (std::size_t j = first; j < std::min(first + size, scores.size()); ++j)
          best = std::max(best, to_float(scores[j]));
        highest.push_back(to_bf16(best));
      }
      highest.back() = to_bf16(infinity);
      positions all(highest.size());
      std::iota(all.begin(), all.end(), 0U);
      candidate_pool pool;
      select_candidates(scores, size, blocks_count, pool);
      BOOST_TEST((pool.blocks == sorted_top_k(highest, all, blocks_count)));
    }
}

BOOST_AUTO_TEST_CASE(refuses_nan_even_in_the_newest_block) {
  BOOST_CHECK_THROW(candidates({1, not_a_number}, 2, 1), cedar::defect);
}

BOOST_AUTO_TEST_CASE(restricts_the_next_selection_to_the_pool) {
  positions out;
  const std::vector<bf16> scores = scores_of({1, 2, 3});
  select_top_k_in_pool(scores, candidate_pool{2, {1, 3}}, 7, 2, out);
  BOOST_TEST(out == (positions{3, 6}), boost::test_tools::per_element());
  select_top_k_in_pool(scores, candidate_pool{2, {1, 3}}, 7, 8, out);
  BOOST_TEST(out == (positions{2, 3, 6}), boost::test_tools::per_element());
  select_top_k_in_pool({}, candidate_pool{}, 7, 8, out);
  BOOST_TEST(out.empty());
}

BOOST_AUTO_TEST_CASE(ignores_blocks_that_lie_beyond_the_visible_positions) {
  positions out;
  BOOST_TEST(pool_size(candidate_pool{2, {1, 7}}, 3) == 1U);
  select_top_k_in_pool(scores_of({3}), candidate_pool{2, {1, 7}}, 3, 8, out);
  BOOST_TEST(out == positions{2}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(refuses_a_pool_that_is_not_ascending) {
  positions out;
  BOOST_CHECK_THROW(select_top_k_in_pool(scores_of({1, 2}), candidate_pool{1, {1, 0}}, 2, 1, out),
                    cedar::defect);
  BOOST_CHECK_THROW(select_top_k_in_pool(scores_of({1, 2}), candidate_pool{1, {1, 1}}, 2, 1, out),
                    cedar::defect);
}

BOOST_AUTO_TEST_CASE(refuses_scores_that_are_not_those_of_the_pool) {
  positions out;
  BOOST_CHECK_EXCEPTION(
      select_top_k_in_pool(scores_of({1, 2}), candidate_pool{2, {0, 1}}, 3, 1, out), cedar::defect,
      [](const cedar::defect& error) {
        return std::string(error.what()).find("2 instead of 3") != std::string::npos;
      });
}

BOOST_AUTO_TEST_CASE(names_the_position_of_a_nan_in_a_pool) {
  positions out;
  BOOST_CHECK_EXCEPTION(select_top_k_in_pool(scores_of({1, 2, not_a_number, 4}),
                                             candidate_pool{2, {3, 9}}, 20, 1, out),
                        cedar::defect, [](const cedar::defect& error) {
                          return std::string(error.what()).find("position 18") != std::string::npos;
                        });
}

BOOST_AUTO_TEST_CASE(agrees_with_a_stable_sort_inside_random_pools) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const std::vector<bf16> scores = random_scores(random, 1 + random() % 60);
    const auto size = static_cast<std::uint32_t>(1 + random() % 9);
    candidate_pool pool;
    select_candidates(scores, size, 1 + random() % 6, pool);
    positions eligible;
    for (const std::uint32_t block : pool.blocks)
      for (std::uint32_t j = block * size;
           j < std::min<std::size_t>((block + 1) * size, scores.size()); ++j)
        eligible.push_back(j);
    const std::size_t k = random() % 20;
    std::vector<bf16> inside;
    for (const std::uint32_t position : eligible) inside.push_back(scores[position]);
    positions out;
    select_top_k_in_pool(inside, pool, scores.size(), k, out);
    BOOST_TEST(out == sorted_top_k(scores, eligible, k), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(expert_selection)

using ids = std::vector<std::int32_t>;

BOOST_AUTO_TEST_CASE(orders_by_biased_score_best_first) {
  BOOST_TEST(experts_of({1, 2, 3, 4}, {0, 5, 0, 0}, 3) == (ids{1, 3, 2}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(gives_ties_to_the_lower_expert) {
  BOOST_TEST(experts_of({2, 1, 2, 1, 2}, {0, 1, 0, 1, 0}, 5) == (ids{0, 1, 2, 3, 4}),
             boost::test_tools::per_element());
  BOOST_TEST(experts_of({0, 3, 3, 3}, {0, 0, 0, 0}, 2) == (ids{1, 2}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(treats_both_zeros_as_equal) {
  BOOST_TEST(experts_of({-0.0F, 0.0F}, {-0.0F, 0.0F}, 1) == ids{0},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(uses_the_image_bias_for_image_rows_only) {
  const std::vector<float> scores = {1, 2, 3, 1, 2, 3};
  const std::vector<float> bias = {0, 0, 0};
  const std::vector<float> image_bias = {9, 0, 0};
  const std::vector<std::uint8_t> image_rows = {0, 1};
  ids experts(2);
  select_experts({scores.data(), 2, 3}, bias, image_bias, image_rows, {experts.data(), 2, 1});
  BOOST_TEST(experts == (ids{2, 0}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(refuses_nan_and_sizes_that_disagree) {
  BOOST_CHECK_THROW(experts_of({1, not_a_number}, {0, 0}, 1), cedar::defect);
  BOOST_CHECK_THROW(experts_of({1, infinity}, {0, -infinity}, 1), cedar::defect);
  BOOST_CHECK_THROW(experts_of({1, 2}, {0, 0, 0}, 1), cedar::defect);
  BOOST_CHECK_THROW(experts_of({1, 2}, {0, 0}, 3), cedar::defect);
}

BOOST_AUTO_TEST_CASE(normalises_route_weights_by_the_selected_unbiased_scores) {
  const std::vector<float> weights = weights_of({1, 2, 5, 9}, {2, 0}, true, 1.5F);
  BOOST_TEST(weights[0] == 5.0F / 6.0F * 1.5F);
  BOOST_TEST(weights[1] == 1.0F / 6.0F * 1.5F);
}

BOOST_AUTO_TEST_CASE(sums_in_ascending_expert_id_whatever_the_order) {
  // 2^24 + 1 + 1: ascending ids give 2^24 (each 1 is lost), the other order 2^24 + 2.
  const std::vector<float> scores = {16777216.0F, 1, 1};
  const std::vector<float> forward = weights_of(scores, {0, 1, 2}, true, 1);
  const std::vector<float> backward = weights_of(scores, {2, 1, 0}, true, 1);
  BOOST_TEST(forward[0] == 1.0F);
  BOOST_TEST(backward[2] == 1.0F);
}

BOOST_AUTO_TEST_CASE(leaves_the_division_out_for_one_expert_or_on_request) {
  BOOST_TEST(weights_of({4, 8}, {1}, true, 1.5F)[0] == 12.0F);
  BOOST_TEST(weights_of({4, 8}, {1, 0}, false, 1.5F)[1] == 6.0F);
}

BOOST_AUTO_TEST_CASE(gives_zero_weights_for_zero_scores) {
  BOOST_TEST(weights_of({0, 0}, {0, 1}, true, 1.5F)[0] == 0.0F);
}

BOOST_AUTO_TEST_CASE(refuses_experts_that_repeat_or_do_not_exist) {
  BOOST_CHECK_THROW(weights_of({1, 2}, {0, 0}, true, 1), cedar::defect);
  BOOST_CHECK_THROW(weights_of({1, 2}, {0, 2}, true, 1), cedar::defect);
  BOOST_CHECK_THROW(weights_of({1, 2}, {0, -1}, true, 1), cedar::defect);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(greedy_choice)

BOOST_AUTO_TEST_CASE(takes_the_lowest_index_of_the_largest_value) {
  BOOST_TEST(arg_max(std::vector<float>{1, 4, 4, 2}) == 1);
  BOOST_TEST(arg_max(std::vector<float>{-0.0F, 0.0F}) == 0);
  BOOST_TEST(arg_max(std::vector<float>{-infinity, -infinity}) == 0);
}

BOOST_AUTO_TEST_CASE(refuses_nan_and_no_values) {
  BOOST_CHECK_THROW(arg_max(std::vector<float>{not_a_number, 1}), cedar::defect);
  BOOST_CHECK_THROW(arg_max(std::vector<float>{1, not_a_number}), cedar::defect);
  BOOST_CHECK_THROW(arg_max({}), cedar::defect);
}

BOOST_AUTO_TEST_SUITE_END()
