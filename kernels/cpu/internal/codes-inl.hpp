// E4M3 and E2M1 codes as exact binary32: 32 of them become two lanes16.
#if defined(CEDAR_KERNELS_CPU_CODES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CEDAR_KERNELS_CPU_CODES_INL
#undef CEDAR_KERNELS_CPU_CODES_INL
#else
#define CEDAR_KERNELS_CPU_CODES_INL
#endif

#include "kernels/cpu/internal/formats.hpp"
#include "kernels/cpu/internal/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

inline constexpr std::size_t block_size = 32;

using f16_tag = hn::Rebind<hwy::float16_t, f32_tag>;

/// 16 E4M3 codes as code * 2^-8: the code's seven bits, moved up by 7, are a binary16 number whose
/// exponent is 8 too small, subnormals included. NaN codes come out as 480 * 2^-8.
HWY_INLINE lanes16 widen_e4m3(const std::uint8_t* codes) {
  const hn::FixedTag<std::int8_t, 16> narrow;
  const hn::FixedTag<std::int16_t, 16> wide;
  const auto signed_codes =
      hn::PromoteTo(wide, hn::LoadU(narrow, reinterpret_cast<const std::int8_t*>(codes)));
  // Sign extension has put the sign into bit 15 as well; bit 14 must be cleared of it.
  const auto bits =
      hn::And(hn::ShiftLeft<7>(signed_codes), hn::Set(wide, static_cast<std::int16_t>(0xbfff)));
  lanes16 out;
#if HWY_TARGET <= HWY_AVX3
  out.part[0] = hn::PromoteTo(f32_tag{}, hn::BitCast(f16_tag{}, bits));
#else
  const hn::Half<decltype(wide)> half;
  out.part[0] = hn::PromoteTo(f32_tag{}, hn::BitCast(f16_tag{}, hn::LowerHalf(half, bits)));
  out.part[1] = hn::PromoteTo(f32_tag{}, hn::BitCast(f16_tag{}, hn::UpperHalf(half, bits)));
#endif
  return out;
}

/// 32 E4M3 weight codes with one scale. Nothing looks for NaN codes here, they count as 480, and
/// scales above 2^119 overflow.
HWY_INLINE void decode_e4m3_weights(const std::uint8_t* codes, float scale, lanes16 (&out)[2]) {
  const auto factor = set(scale * 256.0F);
  for (std::size_t half = 0; half < 2; ++half) {
    const lanes16 raw = widen_e4m3(codes + 16 * half);
    for (std::size_t p = 0; p < parts; ++p) out[half].part[p] = hn::Mul(raw.part[p], factor);
  }
}

/// 32 E4M3 codes of activations or entries with one scale, NaN codes and all scales included.
HWY_INLINE void decode_e4m3(const std::uint8_t* codes, float scale, lanes16 (&out)[2]) {
  const auto factor = set(scale);
  for (std::size_t half = 0; half < 2; ++half) {
    const lanes16 raw = widen_e4m3(codes + 16 * half);
    for (std::size_t p = 0; p < parts; ++p) {
      const auto code = hn::Mul(raw.part[p], set(256.0F));
      const auto finite = hn::Le(hn::Abs(code), set(448.0F));
      out[half].part[p] = hn::IfThenElse(finite, hn::Mul(code, factor), hn::NaN(f32_tag{}));
    }
  }
}

/// 32 E2M1 codes, two a byte, with one scale for each 16 of them.
HWY_INLINE void decode_e2m1(const std::uint8_t* codes, float scale0, float scale1,
                            lanes16 (&out)[2]) {
#if HWY_TARGET <= HWY_AVX3
  // A register holds all sixteen values; scaled first, it is the table of a permutation.
  alignas(64) static constexpr float values[16] = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,
                                                   4.0F,  6.0F,  -0.0F, -0.5F, -1.0F, -1.5F,
                                                   -2.0F, -3.0F, -4.0F, -6.0F};
  const hn::FixedTag<std::uint8_t, 16> bytes;
  const auto packed = hn::LoadU(bytes, codes);
  const auto low = hn::And(packed, hn::Set(bytes, std::uint8_t{0x0f}));
  const auto high = hn::And(hn::ShiftRight<4>(packed), hn::Set(bytes, std::uint8_t{0x0f}));
  const auto table = hn::Load(f32_tag{}, values);
  const i32_tag integers;
  const auto first = hn::PromoteTo(integers, hn::InterleaveLower(bytes, low, high));
  const auto second = hn::PromoteTo(integers, hn::InterleaveUpper(bytes, low, high));
  out[0].part[0] =
      hn::TableLookupLanes(hn::Mul(table, set(scale0)), hn::IndicesFromVec(f32_tag{}, first));
  out[1].part[0] =
      hn::TableLookupLanes(hn::Mul(table, set(scale1)), hn::IndicesFromVec(f32_tag{}, second));
#else
  // The upper byte of the binary16 number of each code; the lower byte is zero.
  alignas(16) static constexpr std::uint8_t upper[16] = {0x00, 0x38, 0x3c, 0x3e, 0x40, 0x42,
                                                         0x44, 0x46, 0x80, 0xb8, 0xbc, 0xbe,
                                                         0xc0, 0xc2, 0xc4, 0xc6};
  const hn::FixedTag<std::uint8_t, 32> bytes;
  const hn::FixedTag<std::uint16_t, 16> pairs;
  const auto packed = hn::PromoteTo(pairs, hn::LoadU(hn::FixedTag<std::uint8_t, 16>{}, codes));
  // The even element stays in the lower byte of a pair, the odd one moves to the upper byte.
  const auto spread = hn::And(hn::Or(packed, hn::ShiftLeft<4>(packed)), hn::Set(pairs, 0x0f0fU));
  const auto halves =
      hn::TableLookupBytes(hn::LoadDup128(bytes, upper), hn::BitCast(bytes, spread));
  // Elements 0..7 and 16..23, then 8..15 and 24..31.
  const auto first = hn::InterleaveLower(bytes, hn::Zero(bytes), halves);
  const auto second = hn::InterleaveUpper(bytes, hn::Zero(bytes), halves);
  const hn::Half<decltype(bytes)> half;
  const auto widen = [](auto numbers, f32_vector factor) HWY_ATTR {
    return hn::Mul(hn::PromoteTo(f32_tag{}, hn::BitCast(f16_tag{}, numbers)), factor);
  };
  const auto factor0 = set(scale0);
  const auto factor1 = set(scale1);
  out[0].part[0] = widen(hn::LowerHalf(half, first), factor0);
  out[0].part[1] = widen(hn::LowerHalf(half, second), factor0);
  out[1].part[0] = widen(hn::UpperHalf(half, first), factor1);
  out[1].part[1] = widen(hn::UpperHalf(half, second), factor1);
#endif
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
