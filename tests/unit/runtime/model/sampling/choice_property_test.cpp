// Goal: choose_token is the rule it documents, for any logits and options. Method: random logits
// (coarse, so that ties are many; or wide) and options against plain_choice().
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <random>

#include "runtime/flow/sampling_rules.hpp"
#include "tests/unit/runtime/model/sampling/plain_choice.hpp"

using namespace cedar;

namespace {

class random_case {
 public:
  explicit random_case(std::uint64_t seed) : random_(seed) {
    const std::uint32_t vocabulary = number(1, 400);
    const std::uint32_t steps = number(0, 1) == 0 ? 4 : 1'000'000;
    const float range = number(0, 1) == 0 ? 3.0F : 60.0F;
    for (std::uint32_t i = 0; i < vocabulary; ++i) logits.push_back(range * (real(steps) - 0.5F));
    options.temperature = number(0, 6) == 0 ? 0 : 0.1F + 2 * real(20);
    if (number(0, 1) == 0) options.top_k = number(1, vocabulary + 2);
    if (number(0, 1) == 0) options.top_p = std::max(real(50), 0.001F);
    if (number(0, 1) == 0) options.min_p = real(100) * real(100);
    if (number(0, 2) == 0) options.repetition_penalty = 0.5F + 2 * real(20);
    if (number(0, 2) == 0) options.presence_penalty = 4 * real(20) - 2;
    if (number(0, 2) == 0) options.frequency_penalty = 4 * real(20) - 2;
    options.seed = random_();
    options.choice = number(0, 3);
    for (std::uint32_t token = 0; token < vocabulary; ++token) {
      if (number(0, 4) == 0) {
        const std::uint32_t answer = number(0, 3);
        uses[static_cast<token_id>(token)] = {answer + number(answer == 0 ? 1 : 0, 3), answer};
      }
      if (number(0, 9) == 0)
        options.bias.push_back({static_cast<token_id>(token), 20 * real(100) - 10});
    }
  }

  std::uint32_t position() { return number(0, 5000); }

  std::vector<float> logits;
  flow::sampling_options options;
  model::token_uses uses;

 private:
  std::uint32_t number(std::uint32_t first, std::uint32_t last) {
    return first + static_cast<std::uint32_t>(random_() % (last - first + 1));
  }
  /// A multiple of 1/steps in [0, 1].
  float real(std::uint32_t steps) {
    return static_cast<float>(number(0, steps)) / static_cast<float>(steps);
  }

  std::mt19937_64 random_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(choice_property)

BOOST_DATA_TEST_CASE(is_the_plain_rule, boost::unit_test::data::xrange(60), block) {
  model::sampling_scratch scratch;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const std::uint64_t seed = static_cast<std::uint64_t>(block) * 50 + i;
    random_case one(seed);
    BOOST_REQUIRE(flow::check(one.options, static_cast<std::uint32_t>(one.logits.size())));
    for (int row = 0; row < 4; ++row) {
      const std::uint32_t position = one.position();
      BOOST_TEST_REQUIRE(
          model::choose_token(one.logits, one.options, one.uses, position, scratch) ==
              test::plain_choice(one.logits, one.options, one.uses, position),
          "seed " << seed << ", position " << position);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
