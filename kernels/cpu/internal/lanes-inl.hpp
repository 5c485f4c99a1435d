// Vectors of binary32 and the sixteen virtual lanes of canonical_sum.hpp, for the instruction set
// that the including file is being compiled for (once per target, see Highway's foreach_target.h).
//
// A `lanes16` holds elements 16j .. 16j+15 of a row: one 512-bit register or two of 256 bits. The
// arithmetic of an element never depends on which.
#if defined(CEDAR_KERNELS_CPU_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CEDAR_KERNELS_CPU_LANES_INL
#undef CEDAR_KERNELS_CPU_LANES_INL
#else
#define CEDAR_KERNELS_CPU_LANES_INL
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/base/dtype.hpp"
#include "kernels/cpu/canonical_sum.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using f32_tag = hn::CappedTag<float, canonical::lanes_count>;
using u32_tag = hn::RebindToUnsigned<f32_tag>;
using i32_tag = hn::RebindToSigned<f32_tag>;
using u16_tag = hn::Rebind<std::uint16_t, f32_tag>;
using f32_vector = hn::Vec<f32_tag>;
using u32_vector = hn::Vec<u32_tag>;
/// Four sums side by side.
using four_tag = hn::FixedTag<float, 4>;
using four_vector = hn::Vec<four_tag>;

/// Elements of a vector: 8 or 16.
inline constexpr std::size_t width = hn::MaxLanes(f32_tag{});
/// Vectors of a lanes16: 2 or 1.
inline constexpr std::size_t parts = canonical::lanes_count / width;
static_assert(parts * width == canonical::lanes_count);

struct lanes16 {
  f32_vector part[parts];
};

HWY_INLINE f32_vector zero() {
  return hn::Zero(f32_tag{});
}

HWY_INLINE f32_vector set(float value) {
  return hn::Set(f32_tag{}, value);
}

HWY_INLINE f32_vector load(const float* from) {
  return hn::LoadU(f32_tag{}, from);
}

HWY_INLINE void store(f32_vector value, float* to) {
  hn::StoreU(value, f32_tag{}, to);
}

/// Exact.
HWY_INLINE f32_vector load(const bf16* from) {
  const auto bits = hn::LoadU(u16_tag{}, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(f32_tag{}, hn::ShiftLeft<16>(hn::PromoteTo(u32_tag{}, bits)));
}

/// Rounds to bf16 (nearest, ties to even, NaN stays NaN), as the upper halves of 32-bit elements.
template <class Tag>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<Tag>> bf16_bits(Tag tag, hn::Vec<Tag> value) {
  const hn::RebindToUnsigned<Tag> integers;
  const auto bits = hn::BitCast(integers, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(integers, 1U));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(integers, 0x7fffU)));
  const auto quiet = hn::Or(bits, hn::Set(integers, 0x00400000U));
  (void)tag;
  return hn::IfThenElse(hn::RebindMask(integers, hn::IsNaN(value)), quiet, rounded);
}

template <class Tag>
HWY_INLINE void store_bf16(Tag tag, hn::Vec<Tag> value, bf16* to) {
  const hn::RebindToSigned<Tag> integers;
  const hn::Rebind<std::uint16_t, Tag> narrow;
  const auto upper = hn::BitCast(integers, hn::ShiftRight<16>(bf16_bits(tag, value)));
  hn::StoreU(hn::DemoteTo(narrow, upper), narrow, reinterpret_cast<std::uint16_t*>(to));
}

HWY_INLINE void store(f32_vector value, bf16* to) {
  store_bf16(f32_tag{}, value, to);
}

/// The value that a store to bf16 and a load would give.
HWY_INLINE f32_vector round_bf16(f32_vector value) {
  const auto kept = hn::And(bf16_bits(f32_tag{}, value), hn::Set(u32_tag{}, 0xffff0000U));
  return hn::BitCast(f32_tag{}, kept);
}

/// The first `count` (at most `width`) elements; the others are zero. T: float or bf16.
template <class T>
HWY_INLINE f32_vector load_first(const T* from, std::size_t count) {
  if (HWY_LIKELY(count >= width)) return load(from);
  T padded[width] = {};
  std::memcpy(padded, from, count * sizeof(T));
  return load(padded);
}

template <class T>
HWY_INLINE void store_first(f32_vector value, T* to, std::size_t count) {
  if (HWY_LIKELY(count >= width)) {
    store(value, to);
  } else {
    T padded[width];
    store(value, padded);
    std::memcpy(to, padded, count * sizeof(T));
  }
}

/// store_first of values that round_bf16 has given.
HWY_INLINE void store_rounded_first(f32_vector value, bf16* to, std::size_t count) {
  if (HWY_LIKELY(count >= width)) {
    const auto upper = hn::BitCast(i32_tag{}, hn::ShiftRight<16>(hn::BitCast(u32_tag{}, value)));
    hn::StoreU(hn::DemoteTo(u16_tag{}, upper), u16_tag{}, reinterpret_cast<std::uint16_t*>(to));
  } else {
    store_first(value, to, count);
  }
}

/// The first two steps of the tree, l += l+8 and l += l+4.
HWY_INLINE four_vector add_to_four(const lanes16& lanes) {
  const hn::FixedTag<float, 8> eight;
#if HWY_TARGET <= HWY_AVX3
  const auto sum =
      hn::Add(hn::LowerHalf(eight, lanes.part[0]), hn::UpperHalf(eight, lanes.part[0]));
#else
  const auto sum = hn::Add(lanes.part[0], lanes.part[1]);
  (void)eight;
#endif
  return hn::Add(hn::LowerHalf(four_tag{}, sum), hn::UpperHalf(four_tag{}, sum));
}

/// The trees of four sums at once.
HWY_INLINE four_vector add_lanes(const lanes16& a, const lanes16& b, const lanes16& c,
                                 const lanes16& d) {
  const four_tag tag;
  const auto fa = add_to_four(a);
  const auto fb = add_to_four(b);
  const auto fc = add_to_four(c);
  const auto fd = add_to_four(d);
  // [a0 a1 b0 b1] + [a2 a3 b2 b3], then even + odd elements.
  const auto ab = hn::Add(hn::ConcatLowerLower(tag, fb, fa), hn::ConcatUpperUpper(tag, fb, fa));
  const auto cd = hn::Add(hn::ConcatLowerLower(tag, fd, fc), hn::ConcatUpperUpper(tag, fd, fc));
  return hn::Add(hn::ConcatEven(tag, cd, ab), hn::ConcatOdd(tag, cd, ab));
}

HWY_INLINE float add_lanes(const lanes16& lanes) {
  return hn::GetLane(add_lanes(lanes, lanes, lanes, lanes));
}

HWY_INLINE lanes16 zero_lanes() {
  lanes16 lanes;
  for (std::size_t p = 0; p < parts; ++p) lanes.part[p] = zero();
  return lanes;
}

/// The canonical sum of term(i, n, lane) over i = 0, width, 2 width ... < count: `term` returns the
/// vector `lane` with the products of elements i .. i+width-1 added, of which the first n exist.
template <class Term>
HWY_INLINE float sum_elements(std::size_t count, const Term& term) {
  f32_vector first = zero();
  f32_vector second = zero();
  for (std::size_t i = 0; i < count; i += canonical::lanes_count) {
    first = term(i, count - i, first);
    if (parts == 2 && i + width < count) second = term(i + width, count - i - width, second);
  }
  lanes16 lanes;
  lanes.part[0] = first;
  if constexpr (parts == 2) lanes.part[1] = second;
  return add_lanes(lanes);
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
