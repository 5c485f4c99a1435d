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

/// 32 E4M3 codes as code * 2^-8: the code's seven bits, moved up by 7, are a binary16 number whose
/// exponent is 8 too small, subnormals included. NaN codes come out as 480 * 2^-8.
HWY_INLINE void widen_e4m3(const std::uint8_t* codes, lanes16 (&out)[2]) {
  const hn::CappedTag<std::int16_t, block_size> wide;
  const hn::Rebind<std::int8_t, decltype(wide)> narrow;
  alignas(64) std::int16_t bits[block_size];
  for (std::size_t i = 0; i < block_size; i += hn::MaxLanes(wide)) {
    const auto signed_codes =
        hn::PromoteTo(wide, hn::LoadU(narrow, reinterpret_cast<const std::int8_t*>(codes + i)));
    // Sign extension has put the sign into bit 15 as well; bit 14 must be cleared of it.
    hn::Store(
        hn::And(hn::ShiftLeft<7>(signed_codes), hn::Set(wide, static_cast<std::int16_t>(0xbfff))),
        wide, bits + i);
  }
  // Through memory: conversion of a register takes the shuffle port as well, and that one binds.
  __asm__("" : "+m"(bits));
  for (std::size_t half = 0; half < 2; ++half)
    for (std::size_t p = 0; p < parts; ++p) {
      const auto* from = reinterpret_cast<const hwy::float16_t*>(bits) + 16 * half + width * p;
      out[half].part[p] = hn::PromoteTo(f32_tag{}, hn::Load(f16_tag{}, from));
    }
}

/// 32 E4M3 weight codes with one scale. Nothing looks for NaN codes here, they count as 480, and
/// scales above 2^119 overflow.
HWY_INLINE void decode_e4m3_weights(const std::uint8_t* codes, float scale, lanes16 (&out)[2]) {
  const auto factor = set(scale * 256.0F);
  widen_e4m3(codes, out);
  for (auto& half : out)
    for (auto& part : half.part) part = hn::Mul(part, factor);
}

/// 32 E4M3 codes of activations or entries with one scale, NaN codes and all scales included.
HWY_INLINE void decode_e4m3(const std::uint8_t* codes, float scale, lanes16 (&out)[2]) {
  const auto factor = set(scale);
  widen_e4m3(codes, out);
  for (auto& half : out)
    for (auto& part : half.part) {
      const auto code = hn::Mul(part, set(256.0F));
      const auto finite = hn::Le(hn::Abs(code), set(448.0F));
      part = hn::IfThenElse(finite, hn::Mul(code, factor), hn::NaN(f32_tag{}));
    }
}

/// How a lanes16 of decoded E2M1 codes lies in registers: the order that decoding is cheapest in. A
/// position has the same lane in every lanes16, so it may be summed as it is.
struct e2m1_order {
#if HWY_TARGET <= HWY_AVX3
  /// Lanes 0, 8, 1, 9, 2, ...
  alignas(64) static constexpr std::int32_t lane[16] = {0, 8,  1, 9,  2, 10, 3, 11,
                                                        4, 12, 5, 13, 6, 14, 7, 15};
  alignas(64) static constexpr std::int32_t position[16] = {0, 2, 4, 6, 8, 10, 12, 14,
                                                            1, 3, 5, 7, 9, 11, 13, 15};
#else
  /// Of each vector the even lanes, then the odd ones.
  alignas(64) static constexpr std::int32_t lane[8] = {0, 2, 4, 6, 1, 3, 5, 7};
  alignas(64) static constexpr std::int32_t position[8] = {0, 4, 1, 5, 2, 6, 3, 7};
#endif
  /// From ascending lanes to this order.
  static HWY_INLINE lanes16 arrange(const lanes16& ascending) {
    return permute(ascending, lane);
  }
  /// Back.
  static HWY_INLINE lanes16 restore(const lanes16& arranged) {
    return permute(arranged, position);
  }

 private:
  static HWY_INLINE lanes16 permute(const lanes16& from, const std::int32_t* indices) {
    lanes16 out;
    for (std::size_t p = 0; p < parts; ++p)
      out.part[p] = hn::TableLookupLanes(from.part[p], hn::SetTableIndices(f32_tag{}, indices));
    return out;
  }
};

/// 32 E2M1 codes, two a byte, times 2^(scale-127), in e2m1_order.
HWY_INLINE void decode_e2m1(const std::uint8_t* codes, std::uint8_t scale, lanes16 (&out)[2]) {
#if HWY_TARGET <= HWY_AVX3
  // Sixteen codes in every pair of positions; shifted, the lower four bits are a position's own.
  // They are all that a permutation looks at, and its table holds the sixteen scaled values.
  alignas(64) static constexpr std::uint32_t shifts[16] = {0,  0,  4,  4,  8,  8,  12, 12,
                                                           16, 16, 20, 20, 24, 24, 28, 28};
  const hn::FixedTag<std::uint64_t, 8> pairs;
  const auto table = hn::Load(f32_tag{}, e2m1_values[scale].data());
  for (std::size_t half = 0; half < 2; ++half) {
    std::uint64_t sixteen;
    std::memcpy(&sixteen, codes + 8 * half, sizeof sixteen);
    const auto indices =
        hn::Shr(hn::BitCast(u32_tag{}, hn::Set(pairs, sixteen)), hn::Load(u32_tag{}, shifts));
    out[half].part[0] = f32_vector{_mm512_permutexvar_ps(indices.raw, table.raw)};
  }
#else
  // Even elements in the lower half, odd ones in the upper; a table for each of the two bytes of a
  // scaled value's bf16 number.
  const hn::FixedTag<std::uint8_t, 32> bytes;
  const hn::FixedTag<std::uint16_t, 16> words;
  alignas(32) static constexpr std::uint32_t shifts[8] = {0, 0, 0, 0, 4, 4, 4, 4};
  const auto spread =
      hn::Shr(hn::BitCast(u32_tag{}, hn::LoadDup128(bytes, codes)), hn::Load(u32_tag{}, shifts));
  const auto indices = hn::And(hn::BitCast(bytes, spread), hn::Set(bytes, std::uint8_t{0x0f}));
  const auto& table = e2m1_bytes[scale];
  const auto low = hn::TableLookupBytes(hn::LoadDup128(bytes, table.low.data()), indices);
  const auto high = hn::TableLookupBytes(hn::LoadDup128(bytes, table.high.data()), indices);
  const auto widen = [&](auto numbers, lanes16& to) HWY_ATTR {
    const auto upper = hn::BitCast(words, numbers);
    to.part[0] = hn::BitCast(f32_tag{}, hn::InterleaveLower(words, hn::Zero(words), upper));
    to.part[1] = hn::BitCast(f32_tag{}, hn::InterleaveUpper(words, hn::Zero(words), upper));
  };
  widen(hn::InterleaveLower(bytes, low, high), out[0]);
  widen(hn::InterleaveUpper(bytes, low, high), out[1]);
#endif
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
