// Goal: kernels decode and encode number formats as the judge does. Method: all codes, and all bf16
// numbers with what lies around them and around the midpoints of E4M3.
#include "kernels/cuda/device/formats.cuh"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "kernels/reference/formats.hpp"
#include "kernels/reference/rounding.hpp"

namespace {

using namespace cedar::kernels;
using namespace cedar::kernels::cuda;

/// Calls with every number whose lower bits are those of a tie, or one off: 2^16 upper halves.
template <class Check>
void for_awkward_numbers(Check check) {
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper)
    for (const std::uint32_t lower : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU})
      check(std::bit_cast<float>(upper << 16 | lower));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_device_formats)

BOOST_AUTO_TEST_CASE(rounds_to_bf16_as_the_judge) {
  std::size_t different = 0;
  for_awkward_numbers([&](float value) {
    const bf16 rounded = round_bf16(value);
    const bool same = std::isnan(value)
                          ? std::isnan(to_float(rounded))
                          : rounded == reference::round_bf16(static_cast<double>(value));
    if (!same || bits_of(widen(rounded)) != std::uint32_t{rounded.bits} << 16) ++different;
  });
  BOOST_TEST(different == 0U);
}

BOOST_AUTO_TEST_CASE(encodes_e4m3_as_the_judge) {
  std::size_t different = 0;
  for_awkward_numbers([&](float value) {
    if (encode_e4m3(value) != reference::encode_e4m3(static_cast<double>(value))) ++different;
  });
  for (int code = 0; code < 126; ++code) {  // midpoints, and one to either side of them
    const auto at = [](int one) { return reference::decode_e4m3(static_cast<std::uint8_t>(one)); };
    const auto middle = static_cast<float>((at(code) + at(code + 1)) / 2);
    for (const float value : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 500.0F)})
      if (encode_e4m3(-value) != reference::encode_e4m3(-static_cast<double>(value))) ++different;
  }
  BOOST_TEST(different == 0U);
}

BOOST_AUTO_TEST_CASE(decodes_all_codes) {
  for (unsigned code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    if ((code & 0x7fU) != 0x7fU)
      BOOST_TEST(static_cast<double>(decode_e4m3(code)) == reference::decode_e4m3(byte));
    if (code < 255)
      BOOST_TEST(static_cast<double>(decode_e8m0(byte)) == reference::decode_e8m0(byte));
  }
  BOOST_TEST(std::isnan(decode_e8m0(255)));
}

BOOST_AUTO_TEST_CASE(scales_are_the_power_of_two_above) {
  std::size_t different = 0;
  for (std::uint32_t upper = 0x0080; upper < 0x7f80; ++upper)  // normal numbers
    for (const std::uint32_t lower : {0U, 1U, 0xffffU}) {
      const auto value = std::bit_cast<float>(upper << 16 | lower);
      if (encode_e8m0_ceiling(value) != reference::encode_e8m0_ceiling(value)) ++different;
    }
  BOOST_TEST(different == 0U);
  BOOST_TEST(encode_e8m0_ceiling(HUGE_VALF) == 255);
  BOOST_TEST(encode_e8m0_ceiling(std::nanf("")) == 255);
}

BOOST_AUTO_TEST_CASE(e2m1_codes_become_e4m3_codes_of_the_same_values) {
  std::size_t different = 0;
  for (std::uint32_t codes = 0; codes < 0x10000; ++codes) {
    const std::uint32_t bytes = e4m3_of_e2m1(codes);
    for (unsigned i = 0; i < 4; ++i) {
      const auto code = static_cast<std::uint8_t>(codes >> (4 * i) & 15U);
      const auto byte = static_cast<std::uint8_t>(bytes >> (8 * i));
      const double expected = reference::decode_e2m1(code), found = reference::decode_e4m3(byte);
      if (found != expected || std::signbit(found) != std::signbit(expected)) ++different;
    }
  }
  BOOST_TEST(different == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
