// Goal: the reference rounds once, to nearest even. Method: exact neighbours and midpoints.
#include "kernels/reference/rounding.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "kernels/reference/formats.hpp"

namespace {

using cedar::kernels::bf16;
using cedar::kernels::reference::round_bf16;
using cedar::kernels::reference::widen;

}  // namespace

BOOST_AUTO_TEST_SUITE(reference_rounding)

BOOST_AUTO_TEST_CASE(keeps_every_bf16_value) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const bf16 value{static_cast<std::uint16_t>(bits)};
    if (std::isnan(widen(value)))
      BOOST_TEST(std::isnan(widen(round_bf16(widen(value)))));
    else
      BOOST_TEST(round_bf16(widen(value)).bits == bits);
  }
}

BOOST_AUTO_TEST_CASE(rounds_midpoints_to_even_and_their_neighbours_to_the_nearer_side) {
  for (const unsigned bits :
       {0x0000U, 0x0001U, 0x007fU, 0x0080U, 0x3f80U, 0x3f81U, 0x40ffU, 0x7f7eU}) {
    for (const unsigned sign : {0U, 0x8000U}) {
      const auto low_bits = static_cast<std::uint16_t>(bits | sign);
      const auto high_bits = static_cast<std::uint16_t>(low_bits + 1);
      const double low = widen(bf16{low_bits});
      const double high = widen(bf16{high_bits});
      const double middle = (low + high) / 2;
      BOOST_TEST(round_bf16(middle).bits == (bits % 2 == 0 ? low_bits : high_bits));
      // Closer than a float can tell: going through float would round twice.
      BOOST_TEST(round_bf16(std::nextafter(middle, low)).bits == low_bits);
      BOOST_TEST(round_bf16(std::nextafter(middle, high)).bits == high_bits);
    }
  }
}

BOOST_AUTO_TEST_CASE(overflows_to_infinity_halfway_beyond_the_largest_value) {
  const double half_step = std::ldexp(1.0, 127 - 8);
  const double limit = widen(bf16{0x7f7f}) + half_step;
  BOOST_TEST(round_bf16(std::nextafter(limit, 0.0)).bits == 0x7f7f);
  BOOST_TEST(round_bf16(limit).bits == 0x7f80);
  BOOST_TEST(round_bf16(-1e300).bits == 0xff80);
  BOOST_TEST(round_bf16(std::numeric_limits<double>::infinity()).bits == 0x7f80);
}

BOOST_AUTO_TEST_CASE(decodes_and_encodes_every_small_code_to_itself) {
  using namespace cedar::kernels::reference;
  for (unsigned code = 0; code < 256; ++code) {
    if ((code & 0x7fU) == 0x7fU)
      BOOST_TEST(std::isnan(decode_e4m3(static_cast<std::uint8_t>(code))));
    else
      BOOST_TEST(encode_e4m3(decode_e4m3(static_cast<std::uint8_t>(code))) == code);
  }
  for (unsigned code = 0; code < 16; ++code)
    BOOST_TEST(encode_e2m1(decode_e2m1(static_cast<std::uint8_t>(code))) == code);
}

BOOST_AUTO_TEST_CASE(takes_the_ceiling_of_the_exponent_on_the_bits) {
  using namespace cedar::kernels::reference;
  for (int exponent = -126; exponent <= 127; ++exponent) {
    const float power = std::ldexp(1.0F, exponent);
    BOOST_TEST(decode_e8m0(encode_e8m0_ceiling(power)) == std::ldexp(1.0, exponent));
    if (exponent == 127) continue;
    const float above = std::nextafter(power, std::numeric_limits<float>::infinity());
    BOOST_TEST(decode_e8m0(encode_e8m0_ceiling(above)) == std::ldexp(1.0, exponent + 1));
  }
}

BOOST_AUTO_TEST_SUITE_END()
