// Goal: rotation frequencies are those of the release. Method: the published frequencies of its
// three variants (tests/data/released), which were computed in fp32 throughout: their powers carry
// one or two roundings more than ours, so values may differ by 2 steps of fp32.
#include "runtime/model/rotary.hpp"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

using namespace cedar;
using nlohmann::json;

namespace {

json released_frequencies() {
  std::ifstream stream(CEDAR_TEST_DATA "/released/rope_frequencies.json");
  BOOST_REQUIRE(stream);
  return json::parse(stream);
}

/// Steps of fp32 between two positive values.
std::int32_t ulps(float a, float b) {
  return std::abs(std::bit_cast<std::int32_t>(a) - std::bit_cast<std::int32_t>(b));
}

void check_frequencies(const std::vector<float>& made, const json& variant) {
  const auto expected = variant.at("frequencies").get<std::vector<float>>();
  BOOST_REQUIRE_EQUAL(made.size(), expected.size());
  for (std::size_t i = 0; i < made.size(); ++i)
    BOOST_TEST(ulps(made[i], expected[i]) <= 2,
               "pair " << i << ": " << made[i] << " instead of " << expected[i]);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rotary)

BOOST_AUTO_TEST_CASE(released_layers_have_the_published_frequencies) {
  const auto config = model::parse_config(CEDAR_SOURCE_DIR "/configs/models/released/config.json");
  BOOST_REQUIRE_MESSAGE(config, (config ? "" : config.error().message));
  const json released = released_frequencies();
  const model::rotary_frequencies made = model::make_rotary(*config);
  check_frequencies(made.window, released.at("sliding_only_layers"));
  check_frequencies(made.compressed, released.at("compressed_layers"));
  BOOST_TEST(&made.of_ratio(0) == &made.window);
  BOOST_TEST(&made.of_ratio(1) == &made.compressed);
  BOOST_TEST(&made.of_ratio(2) == &made.compressed);
}

BOOST_AUTO_TEST_CASE(other_widths_have_the_published_frequencies) {
  const json vision = released_frequencies().at("vision_axis");
  check_frequencies(model::rotary_of(vision.at("theta"), vision.at("dim"), {}), vision);
}

BOOST_AUTO_TEST_CASE(powers_are_correctly_rounded) {
  // Against the host's long double: our double arithmetic rounds once, to fp32.
  for (const float theta : {1.5F, 2.0F, 4000.0F, 10000.0F, 160000.0F, 1e7F})
    for (const std::uint32_t dim : {2U, 16U, 64U, 128U}) {
      const auto made = model::rotary_of(theta, dim, {});
      for (std::uint32_t i = 0; i < dim / 2; ++i) {
        const long double exact =
            std::pow(static_cast<long double>(theta), -2.0L * i / static_cast<long double>(dim));
        BOOST_TEST(made[i] == static_cast<float>(exact), "theta " << theta << ", pair " << i);
      }
    }
}

BOOST_AUTO_TEST_CASE(yarn_keeps_fast_pairs_and_divides_slow_ones) {
  const model::yarn_config yarn{16, 32, 1, 65536};
  const auto plain = model::rotary_of(160000, 64, {});
  const auto scaled = model::rotary_of(160000, 64, yarn);
  for (std::size_t i = 0; i <= 15; ++i) BOOST_TEST(scaled[i] == plain[i]);
  for (std::size_t i = 16; i < 25; ++i) {
    BOOST_TEST(scaled[i] < plain[i]);
    BOOST_TEST(scaled[i] > plain[i] / 16);
  }
  for (std::size_t i = 25; i < 32; ++i) BOOST_TEST(scaled[i] == plain[i] / 16);
}

BOOST_AUTO_TEST_SUITE_END()
