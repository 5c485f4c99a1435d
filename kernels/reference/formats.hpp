// The small number formats of the release, decoded and encoded the slow and obvious way: by table
// and by comparing distances. Independent of every other backend's code.
#pragma once

#include <cstdint>
#include <span>

namespace cedar::kernels::reference {

/// Value of an E4M3 code (finite-only variant: no infinities, 0x7f and 0xff are NaN, largest 448).
double decode_e4m3(std::uint8_t code);

/// Nearest E4M3 code, ties to the even code, magnitudes above 448 saturate, the sign of zero stays.
std::uint8_t encode_e4m3(double value);

/// Value of an E8M0 code: 2^(code - 127); 255 is NaN.
double decode_e8m0(std::uint8_t code);

/// Value of an E2M1 code (0..15): magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6; bit 3 is the sign.
double decode_e2m1(std::uint8_t code);

/// Nearest E2M1 code, ties to the even code, magnitudes above 6 saturate, the sign of zero stays.
std::uint8_t encode_e2m1(double value);

/// Element `index` of a row of E2M1 codes packed two a byte, low nibble first.
double decode_packed_e2m1(std::span<const std::uint8_t> bytes, std::size_t index);

/// E8M0 code of 2^ceil(log2(value)); value is a positive normal number. The ceiling is taken on the
/// bits of the float: the exponent, plus one if the mantissa is not zero.
std::uint8_t encode_e8m0_ceiling(float value);

}  // namespace cedar::kernels::reference
