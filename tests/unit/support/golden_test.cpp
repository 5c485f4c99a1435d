// Goal: the measures of the golden and numeric tests measure what they say. Method: cases by hand.
#include "tests/support/golden.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

namespace {

using namespace cedar::kernels;
using namespace cedar::test;

const float not_a_number = std::numeric_limits<float>::quiet_NaN();

}  // namespace

BOOST_AUTO_TEST_SUITE(golden_comparison)

BOOST_AUTO_TEST_CASE(counts_bf16_steps_across_zero_and_binades) {
  BOOST_TEST(ulp_distance(to_bf16(1), to_bf16(1)) == 0U);
  BOOST_TEST(ulp_distance(to_bf16(1), to_bf16(1.0078125F)) == 1U);
  BOOST_TEST(ulp_distance(to_bf16(1), to_bf16(0.99609375F)) == 1U);
  BOOST_TEST(ulp_distance(to_bf16(0.0F), to_bf16(-0.0F)) == 0U);
  BOOST_TEST(ulp_distance(bf16{0x0001}, bf16{0x8001}) == 2U);
}

BOOST_AUTO_TEST_CASE(puts_nan_at_the_largest_distance_from_every_number) {
  BOOST_TEST(ulp_distance(to_bf16(not_a_number), to_bf16(not_a_number)) == 0U);
  BOOST_TEST(ulp_distance(to_bf16(not_a_number), to_bf16(1)) ==
             std::numeric_limits<std::uint32_t>::max());
  BOOST_TEST(std::isinf(relative_rms(std::vector<float>{not_a_number}, std::vector<float>{1})));
}

BOOST_AUTO_TEST_CASE(knows_the_step_at_a_magnitude) {
  BOOST_TEST(bf16_ulp(1) == 0x1p-7);
  BOOST_TEST(bf16_ulp(-1.99) == 0x1p-7);
  BOOST_TEST(bf16_ulp(2) == 0x1p-6);
  BOOST_TEST(bf16_ulp(0) == 0x1p-133);
  BOOST_TEST(bf16_ulp(0x1p-130) == 0x1p-133);
}

BOOST_AUTO_TEST_CASE(relates_the_rms_of_differences_to_that_of_expected_values) {
  const std::vector<float> expected = {3, 4};
  BOOST_TEST(relative_rms(expected, expected) == 0.0);
  BOOST_TEST(relative_rms(std::vector<float>{3, 4.5F}, expected) == 0.1);
  BOOST_TEST(relative_rms(std::vector<float>{0}, std::vector<float>{0}) == 0.0);
}

BOOST_AUTO_TEST_CASE(reads_tensors_as_matrices_and_widened) {
  const golden_file golden("ops/engram_gate.safetensors");
  const auto stream = golden.matrix<bf16>("stream");
  BOOST_TEST(stream.rows == 8U);
  BOOST_TEST(stream.cols == 4U * 64U);
  BOOST_TEST(golden.floats("stream")[1] == to_float(stream.row(0)[1]));
  BOOST_TEST(golden.integers("text_mask")[6] == 0);
  BOOST_TEST(golden.has("gate"));
  BOOST_TEST(!golden.has("gates"));
  BOOST_CHECK_THROW(golden.floats("gates"), std::runtime_error);
  BOOST_CHECK_THROW(golden_file("ops/nothing.safetensors"), std::runtime_error);
}

BOOST_AUTO_TEST_SUITE_END()
