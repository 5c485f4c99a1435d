// Goal: the noise is that of the published generator, a fixed function with fixed bits, and makes
// the arg max follow the softmax. Method: the known answers of Random123; a recorded hash; chi
// square over many positions, seeds and choices, with fixed seeds so that it cannot fail by chance.
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <set>

#include "runtime/model/philox.hpp"
#include "runtime/model/sampling.hpp"

using namespace cedar;
using namespace cedar::model;
using flow::sampling_options;

namespace {

sampling_options sampled(std::uint64_t seed = 0, std::uint32_t choice = 0) {
  sampling_options out;
  out.temperature = 1;
  out.seed = seed;
  out.choice = choice;
  return out;
}

const std::vector<float> small_logits{0.5F, -1.0F, 2.0F, 0.0F, 1.25F, -2.0F, 1.0F, 0.5F};

/// Chi square of how often each token of small_logits was chosen, against softmax(logits / T).
double chi_square(const std::vector<double>& counts, double temperature) {
  double sum = 0;
  double drawn = 0;
  for (const float logit : small_logits) sum += std::exp(logit / temperature);
  for (const double count : counts) drawn += count;
  double out = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = drawn * std::exp(small_logits[i] / temperature) / sum;
    out += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return out;
}

/// Quantile 0.999 of chi square with 7 degrees of freedom.
constexpr double chi_square_bound = 24.32;

}  // namespace

BOOST_AUTO_TEST_SUITE(noise)

BOOST_AUTO_TEST_CASE(philox_gives_the_published_answers) {
  // Random123, kat_vectors: philox4x32 10.
  const philox_counter zeros = philox4x32({0, 0, 0, 0}, {0, 0});
  BOOST_TEST((zeros == philox_counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t f = 0xffffffff;
  const philox_counter ones = philox4x32({f, f, f, f}, {f, f});
  BOOST_TEST((ones == philox_counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  const philox_counter pi =
      philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0});
  BOOST_TEST((pi == philox_counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

BOOST_AUTO_TEST_CASE(is_the_documented_function_of_seed_choice_position_and_token) {
  for (const std::uint64_t seed : {0ULL, 7ULL, 0xfedcba9876543210ULL})
    for (const std::uint32_t choice : {0U, 3U})
      for (const std::uint32_t position : {0U, 1U, 1'000'000U})
        for (const token_id token : {0, 5, 129'279}) {
          const auto words = philox4x32(
              {static_cast<std::uint32_t>(token), position, choice, 0},
              {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
          const std::uint64_t k = (std::uint64_t{words[0]} << 32 | words[1]) >> 12;
          const double u = std::ldexp(static_cast<double>(k) + 0.5, -52);
          const double expected = -std::log(-std::log(u));
          const double actual = gumbel_noise(sampled(seed, choice), position, token);
          BOOST_TEST(std::fabs(actual - expected) < 1e-13);
        }
}

BOOST_AUTO_TEST_CASE(has_the_same_bits_everywhere) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a over the bits
  for (std::uint32_t position = 0; position < 100; ++position)
    for (token_id token = 0; token < 1000; ++token)
      hash = (hash ^ std::bit_cast<std::uint64_t>(gumbel_noise(sampled(42, 1), position, token))) *
             0x100000001b3U;
  BOOST_TEST(hash == 4119251073465978060U);
}

BOOST_AUTO_TEST_CASE(differs_for_every_seed_choice_position_and_token) {
  std::set<double> seen;
  for (const std::uint64_t seed : {0ULL, 1ULL, 1ULL << 32})
    for (std::uint32_t choice = 0; choice < 5; ++choice)
      for (std::uint32_t position = 0; position < 20; ++position)
        for (token_id token = 0; token < 20; ++token)
          seen.insert(gumbel_noise(sampled(seed, choice), position, token));
  BOOST_TEST(seen.size() == 3U * 5 * 20 * 20);
}

BOOST_AUTO_TEST_CASE(makes_the_choice_follow_the_softmax_over_positions_seeds_and_choices) {
  sampling_scratch scratch;
  for (const float temperature : {0.5F, 1.0F, 2.0F}) {
    std::vector<double> by_position(8), by_seed(8), by_choice(8);
    for (std::uint32_t i = 0; i < 40'000; ++i) {
      const auto draw = [&](std::uint64_t seed, std::uint32_t choice, std::uint32_t position) {
        sampling_options options = sampled(seed, choice);
        options.temperature = temperature;
        return static_cast<std::size_t>(choose_token(small_logits, options, {}, position, scratch));
      };
      ++by_position[draw(1, 0, i)];
      ++by_seed[draw(i, 0, 9)];
      ++by_choice[draw(2, i, 9)];
    }
    for (const auto& counts : {by_position, by_seed, by_choice}) {
      const double statistic = chi_square(counts, temperature);
      BOOST_TEST_MESSAGE("chi square at temperature " << temperature << ": " << statistic);
      BOOST_TEST(statistic < chi_square_bound);
    }
  }
}

BOOST_AUTO_TEST_CASE(of_positions_that_follow_each_other_is_independent) {
  // Pairs of equally likely tokens at positions 2i and 2i + 1: 16 cells, 15 degrees of freedom.
  sampling_scratch scratch;
  const std::vector<float> equal(4, 0.0F);
  std::vector<double> counts(16);
  constexpr std::uint32_t pairs = 32'000;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    const auto first = choose_token(equal, sampled(5), {}, 2 * i, scratch);
    const auto second = choose_token(equal, sampled(5), {}, 2 * i + 1, scratch);
    ++counts[static_cast<std::size_t>(4 * first + second)];
  }
  double statistic = 0;
  for (const double count : counts) {
    const double expected = pairs / 16.0;
    statistic += (count - expected) * (count - expected) / expected;
  }
  BOOST_TEST_MESSAGE("chi square of pairs: " << statistic);
  BOOST_TEST(statistic < 37.7);  // quantile 0.999
}

BOOST_AUTO_TEST_SUITE_END()
