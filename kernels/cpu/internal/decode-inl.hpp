// Dequantising: 32 elements of a row become two lanes16 of exact binary32 values.
//
// Each `*_rows` type is a source of rows: `row(index)` gives a cursor, `block` reads elements
// k .. k+31 of a cursor's row, `tail` the last count < 32 elements (the others become zero). They
// serve as weights, as activations, and as cache entries alike. Rows of a matrix also say how many
// bytes of codes a block has and how far later rows are, for prefetching.
#if defined(CEDAR_KERNELS_CPU_DECODE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CEDAR_KERNELS_CPU_DECODE_INL
#undef CEDAR_KERNELS_CPU_DECODE_INL
#else
#define CEDAR_KERNELS_CPU_DECODE_INL
#endif

#include <span>

#include "kernels/cpu/internal/checks.hpp"
#include "kernels/cpu/internal/formats.hpp"
#include "kernels/cpu/internal/lanes-inl.hpp"
#include "kernels/ops/arguments.hpp"

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

template <class T>
HWY_INLINE void load_block(const T* from, lanes16 (&out)[2]) {
  for (std::size_t half = 0; half < 2; ++half)
    for (std::size_t p = 0; p < parts; ++p) out[half].part[p] = load(from + 16 * half + width * p);
}

/// Rows of bf16 or binary32 numbers.
template <class T>
struct plain_rows {
  struct cursor {
    const T* codes;
  };
  static constexpr std::size_t bytes_per_block = block_size * sizeof(T);
  matrix_view<const T> view;

  HWY_INLINE cursor row(std::size_t index) const { return {view.row_data(index)}; }
  HWY_INLINE std::size_t bytes_to_later(std::size_t rows) const {
    return rows * view.stride * sizeof(T);
  }
  static HWY_INLINE void block(const cursor& at, std::size_t k, lanes16 (&out)[2]) {
    load_block(at.codes + k, out);
  }
  static HWY_INLINE void tail(const cursor& at, std::size_t k, std::size_t count,
                              lanes16 (&out)[2]) {
    T padded[block_size] = {};
    std::memcpy(padded, at.codes + k, count * sizeof(T));
    load_block(padded, out);
  }
};

/// Codes and scale bytes of a row.
struct coded_cursor {
  const std::uint8_t* codes;
  const std::uint8_t* scales;
};

/// Formats whose rows are whole blocks of 32.
struct whole_blocks {
  static HWY_INLINE void tail(const coded_cursor&, std::size_t, std::size_t count, lanes16 (&)[2]) {
    refuse_partial_block(count);
  }
};

/// E4M3 with one E8M0 scale per 32 elements, as activations and entries have it.
struct e4m3_e8m0_format : whole_blocks {
  static HWY_INLINE void block(const coded_cursor& at, std::size_t k, lanes16 (&out)[2]) {
    decode_e4m3(at.codes + k, e8m0_values[at.scales[k / 32]], out);
  }
};

/// E2M1 with one E8M0 scale per 32 elements.
struct e2m1_e8m0_format : whole_blocks {
  static HWY_INLINE void block(const coded_cursor& at, std::size_t k, lanes16 (&out)[2]) {
    const float scale = e8m0_values[at.scales[k / 32]];
    decode_e2m1(at.codes + k / 2, scale, scale, out);
  }
};

/// E2M1 with one E4M3 scale per 16 elements.
struct e2m1_e4m3_format {
  static HWY_INLINE void block(const coded_cursor& at, std::size_t k, lanes16 (&out)[2]) {
    decode_e2m1(at.codes + k / 2, e4m3_values[at.scales[k / 16]],
                e4m3_values[at.scales[k / 16 + 1]], out);
  }
  static HWY_INLINE void tail(const coded_cursor& at, std::size_t k, std::size_t count,
                              lanes16 (&out)[2]) {
    std::uint8_t padded[block_size / 2] = {};
    std::memcpy(padded, at.codes + k / 2, count / 2);
    decode_e2m1(padded, e4m3_values[at.scales[k / 16]], 0.0F, out);
  }
};

/// Activations: codes and scales row by row.
struct fp8_rows : e4m3_e8m0_format {
  using cursor = coded_cursor;
  fp8_rows_view view;
  explicit fp8_rows(const fp8_rows_view& rows) : view(rows) {}
  HWY_INLINE cursor row(std::size_t index) const {
    return {view.codes.row_data(index), view.scales.row_data(index)};
  }
};

/// FP8 weights: 32 rows share their scales.
struct fp8_weight_rows : whole_blocks {
  using cursor = coded_cursor;
  static constexpr std::size_t bytes_per_block = block_size;
  fp8_weight_view view;
  explicit fp8_weight_rows(const fp8_weight_view& weight) : view(weight) {}
  static HWY_INLINE void block(const cursor& at, std::size_t k, lanes16 (&out)[2]) {
    decode_e4m3_weights(at.codes + k, e8m0_values[at.scales[k / 32]], out);
  }
  HWY_INLINE cursor row(std::size_t index) const {
    return {view.codes.row_data(index), view.scales.row_data(index / 32)};
  }
  HWY_INLINE std::size_t bytes_to_later(std::size_t rows) const { return rows * view.codes.stride; }
};

struct fp4_weight_rows : e2m1_e8m0_format {
  using cursor = coded_cursor;
  static constexpr std::size_t bytes_per_block = block_size / 2;
  fp4_weight_view view;
  explicit fp4_weight_rows(const fp4_weight_view& weight) : view(weight) {}
  HWY_INLINE cursor row(std::size_t index) const {
    return {view.codes.row_data(index), view.scales.row_data(index)};
  }
  HWY_INLINE std::size_t bytes_to_later(std::size_t rows) const { return rows * view.codes.stride; }
};

/// Packed cache entries, each somewhere in memory.
template <class Format>
struct entry_rows : Format {
  using cursor = coded_cursor;
  std::span<const std::byte* const> entries;
  std::size_t codes_bytes = 0;  // where the scales of an entry begin

  entry_rows(std::span<const std::byte* const> pointers, std::size_t bytes)
      : entries(pointers), codes_bytes(bytes) {}
  HWY_INLINE cursor row(std::size_t index) const {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(entries[index]);
    return {bytes, bytes + codes_bytes};
  }
};

struct bf16_entry_rows {
  using cursor = plain_rows<bf16>::cursor;
  std::span<const std::byte* const> entries;

  HWY_INLINE cursor row(std::size_t index) const {
    return {reinterpret_cast<const bf16*>(entries[index])};
  }
  static HWY_INLINE void block(const cursor& at, std::size_t k, lanes16 (&out)[2]) {
    plain_rows<bf16>::block(at, k, out);
  }
  static HWY_INLINE void tail(const cursor& at, std::size_t k, std::size_t count,
                              lanes16 (&out)[2]) {
    plain_rows<bf16>::tail(at, k, count, out);
  }
};

/// Calls use(rows) with the reader of entries of this format and width.
template <class Use>
HWY_INLINE void with_entries(entry_format format, std::span<const std::byte* const> entries,
                             std::size_t entry_width, const Use& use) {
  const std::size_t bytes = code_bytes(format, entry_width);
  switch (format) {
    case entry_format::bf16:
      return use(bf16_entry_rows{entries});
    case entry_format::fp8_e8m0_32:
      return use(entry_rows<e4m3_e8m0_format>(entries, bytes));
    case entry_format::fp4_e4m3_16:
      return use(entry_rows<e2m1_e4m3_format>(entries, bytes));
    case entry_format::fp4_e8m0_32:
      return use(entry_rows<e2m1_e8m0_format>(entries, bytes));
  }
}

/// Visits a row of `size` elements block by block: visit(k, values), zeros after the end.
template <class Rows, class Visit>
HWY_INLINE void for_each_block(const Rows&, const typename Rows::cursor& at, std::size_t begin,
                               std::size_t end, const Visit& visit) {
  lanes16 values[2];
  std::size_t k = begin;
  for (; k + block_size <= end; k += block_size) {
    Rows::block(at, k, values);
    visit(k, values);
  }
  if (k < end) {
    Rows::tail(at, k, end - k, values);
    visit(k, values);
  }
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
