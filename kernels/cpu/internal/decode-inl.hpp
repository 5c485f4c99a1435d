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
#include "kernels/cpu/internal/codes-inl.hpp"
#include "kernels/ops/arguments.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

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

/// What E2M1 formats have in common: decoded in e2m1_order, then put in ascending order.
template <class Format>
struct e2m1_format {
  using weight_order = e2m1_order;
  static HWY_INLINE void block(const coded_cursor& at, std::size_t k, lanes16 (&out)[2]) {
    Format::arranged_block(at, k, out);
    for (lanes16& half : out) half = e2m1_order::restore(half);
  }
};

/// E2M1 with one E8M0 scale per 32 elements.
struct e2m1_e8m0_format : e2m1_format<e2m1_e8m0_format>, whole_blocks {
  static HWY_INLINE void arranged_block(const coded_cursor& at, std::size_t k, lanes16 (&out)[2]) {
    decode_e2m1(at.codes + k / 2, at.scales[k / 32], out);
  }
};

/// E2M1 with one E4M3 scale per 16 elements.
struct e2m1_e4m3_format : e2m1_format<e2m1_e4m3_format> {
  static HWY_INLINE void arranged_block(const coded_cursor& at, std::size_t k, lanes16 (&out)[2]) {
    decode(at.codes + k / 2, e4m3_values[at.scales[k / 16]], e4m3_values[at.scales[k / 16 + 1]],
           out);
  }
  static HWY_INLINE void tail(const coded_cursor& at, std::size_t k, std::size_t count,
                              lanes16 (&out)[2]) {
    std::uint8_t padded[block_size / 2] = {};
    std::memcpy(padded, at.codes + k / 2, count / 2);
    decode(padded, e4m3_values[at.scales[k / 16]], 0.0F, out);
    for (lanes16& half : out) half = e2m1_order::restore(half);
  }

 private:
  static HWY_INLINE void decode(const std::uint8_t* codes, float scale0, float scale1,
                                lanes16 (&out)[2]) {
    constexpr std::uint8_t one = 127;
    decode_e2m1(codes, one, out);
    for (auto& part : out[0].part) part = hn::Mul(part, set(scale0));
    for (auto& part : out[1].part) part = hn::Mul(part, set(scale1));
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
  static constexpr std::size_t rows_per_scale = 32;
  fp8_weight_view view;
  explicit fp8_weight_rows(const fp8_weight_view& weight) : view(weight) {}
  static HWY_INLINE void block(const cursor& at, std::size_t k, lanes16 (&out)[2]) {
    decode_e4m3_weights(at.codes + k, e8m0_values[at.scales[k / 32]], out);
  }
  HWY_INLINE cursor row(std::size_t index) const {
    return {view.codes.row_data(index), view.scales.row_data(index / rows_per_scale)};
  }
  HWY_INLINE std::size_t bytes_to_later(std::size_t rows) const { return rows * view.codes.stride; }
};

/// The same without scales: a block is codes * 2^-exponent.
struct unscaled_fp8_weight_rows : fp8_weight_rows {
  static constexpr std::int32_t exponent = 8;
  explicit unscaled_fp8_weight_rows(const fp8_weight_rows& rows) : fp8_weight_rows(rows) {}
  static HWY_INLINE void block(const cursor& at, std::size_t k, lanes16 (&out)[2]) {
    widen_e4m3(at.codes + k, out);
  }
};

#if HWY_TARGET > HWY_AVX3
/// The same as subnormal_e4m3 gives them.
struct subnormal_fp8_weight_rows : fp8_weight_rows {
  using weight_order = even_odd_order;
  static constexpr std::int32_t exponent = 120;
  explicit subnormal_fp8_weight_rows(const fp8_weight_rows& rows) : fp8_weight_rows(rows) {}
  static HWY_INLINE void arranged_block(const cursor& at, std::size_t k, lanes16 (&out)[2]) {
    subnormal_e4m3(at.codes + k, out);
  }
};
#endif

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

/// Lanes that ascend.
struct ascending_order {
  static HWY_INLINE const lanes16& arrange(const lanes16& lanes) { return lanes; }
  static HWY_INLINE const lanes16& restore(const lanes16& lanes) { return lanes; }
};

/// How a format's rows are decoded as weights: x is put in the same order before, the sums are put
/// in ascending order after.
template <class Rows>
struct weights_of {
  using order = ascending_order;
  static HWY_INLINE void block(const typename Rows::cursor& at, std::size_t k, lanes16 (&out)[2]) {
    Rows::block(at, k, out);
  }
};
template <class Rows>
requires requires {
  typename Rows::weight_order;
}
struct weights_of<Rows> {
  using order = typename Rows::weight_order;
  static HWY_INLINE void block(const typename Rows::cursor& at, std::size_t k, lanes16 (&out)[2]) {
    Rows::arranged_block(at, k, out);
  }
};

/// The last count < 32 elements in the order of weights.
template <class Rows>
HWY_INLINE void weights_tail(const typename Rows::cursor& at, std::size_t k, std::size_t count,
                             lanes16 (&out)[2]) {
  Rows::tail(at, k, count, out);
  for (lanes16& half : out) half = weights_of<Rows>::order::arrange(half);
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
