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

#if HWY_TARGET > HWY_AVX3
// Where a lanes16 has two vectors, numbers that lie as 16-bit upper halves of binary32 are cheapest
// to widen as even and odd ones: a shift and a mask, no shuffle.

/// The even lanes in the first vector, the odd ones in the second.
HWY_INLINE lanes16 deinterleave(const lanes16& lanes) {
  return {{hn::ConcatEven(f32_tag{}, lanes.part[1], lanes.part[0]),
           hn::ConcatOdd(f32_tag{}, lanes.part[1], lanes.part[0])}};
}
/// Back.
HWY_INLINE lanes16 interleave(const lanes16& lanes) {
  const auto lower = hn::InterleaveLower(f32_tag{}, lanes.part[0], lanes.part[1]);
  const auto upper = hn::InterleaveUpper(f32_tag{}, lanes.part[0], lanes.part[1]);
  return {{hn::ConcatLowerLower(f32_tag{}, upper, lower),
           hn::ConcatUpperUpper(f32_tag{}, upper, lower)}};
}

/// Sixteen upper halves, deinterleaved.
template <class Halves>
HWY_INLINE lanes16 widen_halves(Halves halves) {
  const auto pairs = hn::BitCast(u32_tag{}, halves);
  return {{hn::BitCast(f32_tag{}, hn::ShiftLeft<16>(pairs)),
           hn::BitCast(f32_tag{}, hn::And(pairs, hn::Set(u32_tag{}, 0xffff0000U)))}};
}
#endif

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

#if HWY_TARGET > HWY_AVX3
/// How a lanes16 of subnormal_e4m3 lies in registers.
struct even_odd_order {
  static HWY_INLINE lanes16 arrange(const lanes16& ascending) { return deinterleave(ascending); }
  static HWY_INLINE lanes16 restore(const lanes16& arranged) { return interleave(arranged); }
};

/// 32 E4M3 codes as code * 2^-120, in even_odd_order: the bits of a code, where binary32 has the
/// lowest bits of its exponent and the highest of its mantissa. Subnormal codes are subnormal
/// numbers, so this is for processors that multiply them as quickly as others. NaN codes come out
/// as 480 * 2^-120.
HWY_INLINE void subnormal_e4m3(const std::uint8_t* codes, lanes16 (&out)[2]) {
  // A code in both bytes of each of sixteen words, those of the lower eight in the lower half.
  alignas(32) static constexpr std::uint8_t twice[32] = {0,  0,  1,  1,  2,  2,  3,  3,  4,  4,  5,
                                                         5,  6,  6,  7,  7,  8,  8,  9,  9,  10, 10,
                                                         11, 11, 12, 12, 13, 13, 14, 14, 15, 15};
  const hn::FixedTag<std::uint8_t, 32> bytes;
  const hn::FixedTag<std::int16_t, 16> words;
  const auto order = hn::Load(bytes, twice);
  for (std::size_t half = 0; half < 2; ++half) {
    const auto sixteen =
        hn::BitCast(words, hn::TableLookupBytes(hn::LoadDup128(bytes, codes + 16 * half), order));
    // Bit 15 is the sign; the other seven bits move to where 16-bit upper halves have them.
    out[half] = widen_halves(
        hn::And(hn::ShiftRight<4>(sixteen), hn::Set(words, static_cast<std::int16_t>(0x87f0))));
  }
}
#endif

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
  /// From ascending lanes to this order: 0, 8, 1, 9, 2, ...
  static HWY_INLINE lanes16 arrange(const lanes16& ascending) {
    alignas(64) static constexpr std::int32_t lane[16] = {0, 8,  1, 9,  2, 10, 3, 11,
                                                          4, 12, 5, 13, 6, 14, 7, 15};
    return permute(ascending, lane);
  }
  /// Back.
  static HWY_INLINE lanes16 restore(const lanes16& arranged) {
    alignas(64) static constexpr std::int32_t position[16] = {0, 2, 4, 6, 8, 10, 12, 14,
                                                              1, 3, 5, 7, 9, 11, 13, 15};
    return permute(arranged, position);
  }

 private:
  static HWY_INLINE lanes16 permute(const lanes16& from, const std::int32_t* indices) {
    return {{hn::TableLookupLanes(from.part[0], hn::SetTableIndices(f32_tag{}, indices))}};
  }
#else
  /// From ascending lanes to this order: 0, 4, 8, 12, 1, 5, ... and 2, 6, 10, ...
  static HWY_INLINE lanes16 arrange(const lanes16& ascending) {
    return deinterleave(deinterleave(ascending));
  }
  /// Back.
  static HWY_INLINE lanes16 restore(const lanes16& arranged) {
    return interleave(interleave(arranged));
  }
#endif
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
  alignas(32) static constexpr std::uint32_t shifts[8] = {0, 0, 0, 0, 4, 4, 4, 4};
  const auto spread =
      hn::Shr(hn::BitCast(u32_tag{}, hn::LoadDup128(bytes, codes)), hn::Load(u32_tag{}, shifts));
  const auto indices = hn::And(hn::BitCast(bytes, spread), hn::Set(bytes, std::uint8_t{0x0f}));
  const auto& table = e2m1_bytes[scale];
  const auto low = hn::TableLookupBytes(hn::LoadDup128(bytes, table.low.data()), indices);
  const auto high = hn::TableLookupBytes(hn::LoadDup128(bytes, table.high.data()), indices);
  out[0] = widen_halves(hn::InterleaveLower(bytes, low, high));
  out[1] = widen_halves(hn::InterleaveUpper(bytes, low, high));
#endif
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
