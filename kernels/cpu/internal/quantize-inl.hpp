// Quantising to E4M3 with one E8M0 scale per 32 elements, and the parts that other formats share.
//
// A group that holds an infinity or a NaN gets a NaN scale, so that whoever uses it computes NaN.
#if defined(CEDAR_KERNELS_CPU_QUANTIZE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CEDAR_KERNELS_CPU_QUANTIZE_INL
#undef CEDAR_KERNELS_CPU_QUANTIZE_INL
#else
#define CEDAR_KERNELS_CPU_QUANTIZE_INL
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/cpu/internal/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

inline constexpr std::uint32_t infinity_bits = 0x7f800000U;
inline constexpr std::uint8_t e8m0_nan = 0xff;
inline constexpr std::uint8_t e4m3_nan = 0x7f;

/// Bits of the largest magnitude of `count` (16 or 32) elements. Magnitudes compare as integers,
/// and a NaN is larger than everything.
HWY_INLINE std::uint32_t largest_bits(const bf16* x, std::size_t count) {
  const i32_tag integers;
  auto largest = hn::Zero(integers);
  for (std::size_t i = 0; i < count; i += width)
    largest = hn::Max(largest, hn::BitCast(integers, hn::Abs(load(x + i))));
  return static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(integers, largest)));
}

/// The E8M0 byte of 2^ceil(log2(value)): the exponent, plus one if the mantissa is not zero.
HWY_INLINE std::uint8_t e8m0_ceiling(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint8_t>((bits >> 23) + ((bits & 0x7fffffU) != 0 ? 1U : 0U));
}

/// 1 / 2^(byte - 127) for bytes up to 253, exactly.
HWY_INLINE f32_vector inverse_e8m0(std::uint8_t byte) {
  return set(std::bit_cast<float>((254U - byte) << 23));
}

/// E4M3 codes (nearest, ties to even, saturating at 448) in 32-bit elements.
HWY_INLINE hn::Vec<i32_tag> encode_e4m3(f32_vector value) {
  const u32_tag integers;
  const auto magnitude = hn::Min(set(448.0F), hn::Abs(value));
  // From 2^-6 on: round the mantissa to three bits, then move the exponent's bias from 127 to 7.
  const auto bits = hn::BitCast(integers, magnitude);
  const auto odd = hn::And(hn::ShiftRight<20>(bits), hn::Set(integers, 1U));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(integers, 0x7ffffU)));
  const auto normal = hn::Sub(hn::ShiftRight<20>(rounded), hn::Set(integers, 120U << 3));
  // Below: multiples of 2^-9, which adding 2^14 rounds to. Code 8 is 2^-6 itself.
  const auto offset = set(16384.0F);
  const auto small =
      hn::Sub(hn::BitCast(integers, hn::Add(magnitude, offset)), hn::BitCast(integers, offset));
  const auto is_small = hn::RebindMask(integers, hn::Lt(magnitude, set(0x1p-6F)));
  const auto code = hn::IfThenElse(is_small, small, normal);
  const auto sign =
      hn::And(hn::ShiftRight<24>(hn::BitCast(integers, value)), hn::Set(integers, 0x80U));
  return hn::BitCast(i32_tag{}, hn::Or(code, sign));
}

HWY_INLINE void store_codes(hn::Vec<i32_tag> codes, std::uint8_t* to) {
  const hn::Rebind<std::uint8_t, i32_tag> narrow;
  hn::StoreU(hn::DemoteTo(narrow, codes), narrow, to);
}

/// 32 elements to 32 codes and the returned scale byte.
HWY_INLINE std::uint8_t quantize_fp8_group(const bf16* x, std::uint8_t* codes) {
  const std::uint32_t bits = largest_bits(x, 32);
  if (bits >= infinity_bits) {
    std::memset(codes, e4m3_nan, 32);
    return e8m0_nan;
  }
  const float largest = std::max(std::bit_cast<float>(bits), 1e-4F);
  const std::uint8_t scale = e8m0_ceiling(largest * (1.0F / 448.0F));
  const auto inverse = inverse_e8m0(scale);
  for (std::size_t i = 0; i < 32; i += width)
    store_codes(encode_e4m3(hn::Mul(load(x + i), inverse)), codes + i);
  return scale;
}

/// `size` elements, a multiple of 32.
HWY_INLINE void quantize_fp8_row(const bf16* x, std::size_t size, std::uint8_t* codes,
                                 std::uint8_t* scales) {
  for (std::size_t group = 0; group < size / 32; ++group)
    scales[group] = quantize_fp8_group(x + 32 * group, codes + 32 * group);
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
