// Index products of packed FP4 keys in integers: exact, and therefore the bits of the canonical
// sum.
//
// Twice an E2M1 code is an integer of at most 12, so a block of 32 has an exact integer product. In
// the canonical order a product of a head and a key adds multiples of one unit, 2^-2 times the
// smallest scale of a block pair; while their magnitudes add up to at most 2^24 units every partial
// sum is a binary32 number and no order rounds. `index_query` holds the bounds on the scales of a
// key that grant this, and that keep what follows (a product with a weight, bf16 roundings) within
// normal numbers. Keys outside, NaN scales and blocks of zeros among them, are the caller's.
//
// Keys lie side by side in the lanes; their codes become unsigned bytes (12 added), those of the
// query stay signed, and the products of four codes are added in 32-bit lanes.
#if defined(CEDAR_KERNELS_CPU_INDEX_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CEDAR_KERNELS_CPU_INDEX_INL
#undef CEDAR_KERNELS_CPU_INDEX_INL
#else
#define CEDAR_KERNELS_CPU_INDEX_INL
#endif

#include <immintrin.h>

#include <algorithm>
#include <span>

#include "kernels/cpu/internal/formats.hpp"
#include "kernels/cpu/internal/lanes-inl.hpp"
#include "kernels/cpu/internal/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

/// Keys that are scored together: vectors of them share the loads of the query.
inline constexpr std::size_t group_vectors = width == 16 ? 2 : 1;
inline constexpr std::size_t group_keys = width * group_vectors;
inline constexpr std::size_t index_block = 32;
/// Bytes of the codes of a block, and 32-bit numbers that they become, a byte a code.
inline constexpr std::size_t block_bytes = index_block / 2;
inline constexpr std::size_t block_words = index_block / 4;
/// What is added to twice a code of a key.
inline constexpr int code_offset = 12;

using byte_tag = hn::Repartition<std::uint8_t, i32_tag>;
using byte_vector = hn::Vec<byte_tag>;
using i32_vector = hn::Vec<i32_tag>;

/// Twice the E2M1 values, plus code_offset.
alignas(16) inline constexpr std::uint8_t offset_codes[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                                              12, 11, 10, 9,  8,  6,  4,  0};

/// A row's query heads, prepared for integer products.
struct index_query {
  std::size_t heads = 0;
  std::size_t blocks = 0;
  std::int32_t* codes = nullptr;  ///< [blocks, heads, block_words]: four codes each, as of a key
  std::int32_t* offsets = nullptr;  ///< [blocks, heads]: takes code_offset back
  float* scales = nullptr;  ///< [blocks, heads]: a quarter of the block's scale
  float* weights = nullptr;  ///< [heads]
  /// Scale bytes of a key: each within [lowest, highest], at most `spread` apart.
  std::int32_t lowest = 0;
  std::int32_t highest = -1;
  std::int32_t spread = -1;
};

/// Bits of a number: 2^(bits - 1) <= number < 2^bits.
HWY_INLINE int bits_of(std::size_t number) {
  return number == 0 ? 0 : 64 - __builtin_clzll(number);
}

/// Exponents of something, as long as there is any.
struct exponent_range {
  int least = 1000;
  int most = -1000;

  HWY_INLINE void add(int exponent) {
    least = least < exponent ? least : exponent;
    most = most > exponent ? most : exponent;
  }
  HWY_INLINE bool any() const { return least <= most; }
};

/// Codes of a block of the query in the order of a key's bytes: of each 8, the even ones, then the
/// odd ones. Returns whether any is not zero.
HWY_INLINE bool spread_codes(const std::uint8_t* packed, std::int32_t* words, std::int32_t& sum) {
  std::int8_t bytes[index_block];
  sum = 0;
  bool any = false;
  for (std::size_t i = 0; i < index_block; ++i) {
    const std::size_t element = i / 8 * 8 + i % 4 * 2 + i / 4 % 2;
    const int nibble = packed[element / 2] >> (element % 2 * 4) & 15;
    const int code = offset_codes[nibble] - code_offset;
    bytes[i] = static_cast<std::int8_t>(code);
    sum += code;
    any = any || code != 0;
  }
  std::memcpy(words, bytes, sizeof(bytes));
  return any;
}

/// The bounds on a key's scales. `scales`: exponents of all blocks of the query, `apart`: how far
/// those of one head are apart at most; `weights`: exponents of the weights that are not zero.
HWY_INLINE void set_bounds(index_query& query, exponent_range scales, int apart,
                           exponent_range weights) {
  if (!scales.any()) scales.add(0);
  if (!weights.any()) weights.add(0);
  // blocks * 32 * 12 * 12 * 2^(apart + spread) <= 2^24
  const std::size_t most_units = (std::size_t{1} << 24) / (query.blocks * index_block * 144);
  query.spread = bits_of(most_units) - 1 - apart;
  // The smallest product that is not zero is normal, and so is it times a weight.
  const int least = scales.least - 2 + std::min(0, weights.least);
  query.lowest = std::max(1, 127 - 126 - least);
  // The largest, times a weight, leaves room for the 2^16 of round_normal.
  const int bits = bits_of(query.blocks * index_block * 36);
  query.highest = 127 + 110 - bits - scales.most - std::max(0, weights.most + 1);
  // A quarter of the smallest scale is normal.
  if (scales.least < -124) query.highest = -1;
}

/// `heads` entries of `blocks` blocks each; the memory of `frame`.
inline index_query prepare_index_query(scratch& frame, const matrix_view<const std::byte>& packed,
                                       std::span<const bf16> weights, std::size_t blocks) {
  index_query out;
  out.heads = weights.size();
  out.blocks = blocks;
  out.codes = frame.take<std::int32_t>(blocks * out.heads * block_words);
  out.offsets = frame.take<std::int32_t>(blocks * out.heads);
  out.scales = frame.take<float>(blocks * out.heads);
  out.weights = frame.take<float>(out.heads);
  exponent_range scales;
  exponent_range weight_exponents;
  int apart = 0;
  bool finite = true;
  for (std::size_t head = 0; head < out.heads; ++head) {
    const auto* codes = reinterpret_cast<const std::uint8_t*>(packed.row_data(head));
    exponent_range own;
    for (std::size_t block = 0; block < blocks; ++block) {
      const std::size_t at = block * out.heads + head;
      const std::uint8_t scale = codes[blocks * block_bytes + block];
      std::int32_t sum = 0;
      const bool any = spread_codes(codes + block * block_bytes, out.codes + at * block_words, sum);
      out.offsets[at] = -code_offset * sum;
      out.scales[at] = any ? 0.25F * e8m0_values[scale] : 0.0F;
      if (any) own.add(scale - 127);
      finite = finite && scale != 255;
    }
    if (own.any()) {
      scales.add(own.least);
      scales.add(own.most);
      apart = std::max(apart, own.most - own.least);
    }
    out.weights[head] = to_float(weights[head]);
    const int exponent = weights[head].bits >> 7 & 255;
    if ((weights[head].bits & 0x7fffU) != 0)
      weight_exponents.add(exponent == 0 ? -133 : exponent - 127);
    finite = finite && exponent != 255;
  }
  set_bounds(out, scales, apart, weight_exponents);
  if (!finite) out.highest = -1;
  return out;
}

/// Working memory of a group of keys.
struct key_group {
  /// [blocks, group_vectors, 4, width / 4, block_bytes]: a vector holds keys i, i + 4, i + 8, ...
  std::uint8_t* codes = nullptr;
  std::uint8_t* scale_bytes = nullptr;  ///< [blocks, group_keys]
  float* totals = nullptr;  ///< [heads, group_keys]

  key_group(scratch& frame, const index_query& query)
      : codes(frame.take<std::uint8_t>(query.blocks * block_bytes * group_keys)),
        scale_bytes(frame.take<std::uint8_t>(query.blocks * group_keys)),
        totals(frame.take<float>(query.heads * group_keys)) {}
};

/// Brings key number `lane` of the group in.
HWY_INLINE void place_key(const index_query& query, const key_group& group, std::size_t lane,
                          const std::byte* key) {
  const auto* codes = reinterpret_cast<const std::uint8_t*>(key);
  const std::size_t vector = lane / width;
  const std::size_t at = ((vector * 4 + lane % 4) * (width / 4) + lane % width / 4) * block_bytes;
  for (std::size_t block = 0; block < query.blocks; ++block) {
    std::memcpy(group.codes + block * block_bytes * group_keys + at, codes + block * block_bytes,
                block_bytes);
    group.scale_bytes[block * group_keys + lane] = codes[query.blocks * block_bytes + block];
  }
}

HWY_INLINE i32_vector load_scale_bytes(const key_group& group, std::size_t block,
                                       std::size_t vector) {
  const hn::Rebind<std::uint8_t, i32_tag> narrow;
  return hn::PromoteTo(i32_tag{},
                       hn::LoadU(narrow, group.scale_bytes + block * group_keys + vector * width));
}

/// Whether all keys of the group are within the query's bounds.
HWY_INLINE bool exact(const index_query& query, const key_group& group) {
  const i32_tag integers;
  auto outside = hn::Zero(integers);
  for (std::size_t vector = 0; vector < group_vectors; ++vector) {
    auto least = load_scale_bytes(group, 0, vector);
    auto most = least;
    for (std::size_t block = 1; block < query.blocks; ++block) {
      const auto bytes = load_scale_bytes(group, block, vector);
      least = hn::Min(least, bytes);
      most = hn::Max(most, bytes);
    }
    // Differences that are negative where a bound is broken.
    const auto low = hn::Sub(least, hn::Set(integers, query.lowest));
    const auto high = hn::Sub(hn::Set(integers, query.highest), most);
    const auto near = hn::Sub(hn::Add(least, hn::Set(integers, query.spread)), most);
    outside = hn::Or(outside, hn::Or(low, hn::Or(high, near)));
  }
  return hn::GetLane(hn::MinOfLanes(integers, outside)) >= 0;
}

/// The bytes of one block of `width` keys: word i holds four codes of each key.
HWY_INLINE void load_words(const std::uint8_t* codes, byte_vector (&words)[block_words]) {
  const byte_tag bytes;
  const u32_tag singles;
  const hn::Repartition<std::uint64_t, byte_tag> doubles;
  const hn::Repartition<std::uint16_t, byte_tag> halves;
  const auto row = [&](std::size_t i) HWY_ATTR {
    return hn::BitCast(singles, hn::Load(bytes, codes + i * width * 4));
  };
  const auto a = row(0);
  const auto b = row(1);
  const auto c = row(2);
  const auto d = row(3);
  const auto low_ab = hn::BitCast(doubles, hn::InterleaveLower(singles, a, b));
  const auto low_cd = hn::BitCast(doubles, hn::InterleaveLower(singles, c, d));
  const auto high_ab = hn::BitCast(doubles, hn::InterleaveUpper(singles, a, b));
  const auto high_cd = hn::BitCast(doubles, hn::InterleaveUpper(singles, c, d));
  const auto table = hn::LoadDup128(bytes, offset_codes);
  const auto mask = hn::Set(bytes, std::uint8_t{0x0f});
  const auto split = [&](auto packed, byte_vector& even, byte_vector& odd) HWY_ATTR {
    even = hn::TableLookupBytes(table, hn::And(hn::BitCast(bytes, packed), mask));
    const auto shifted = hn::BitCast(bytes, hn::ShiftRight<4>(hn::BitCast(halves, packed)));
    odd = hn::TableLookupBytes(table, hn::And(shifted, mask));
  };
  split(hn::InterleaveLower(doubles, low_ab, low_cd), words[0], words[1]);
  split(hn::InterleaveUpper(doubles, low_ab, low_cd), words[2], words[3]);
  split(hn::InterleaveLower(doubles, high_ab, high_cd), words[4], words[5]);
  split(hn::InterleaveUpper(doubles, high_ab, high_cd), words[6], words[7]);
}

/// Sums of two products each, in 16 bits: at most 576.
HWY_INLINE auto pair_products(byte_vector key, i32_vector query) {
#if HWY_TARGET <= HWY_AVX3
  return _mm512_maddubs_epi16(key.raw, query.raw);
#else
  return _mm256_maddubs_epi16(key.raw, query.raw);
#endif
}

/// The products of a block, in 32 bits: `words` of the keys times four codes of the query each.
HWY_INLINE i32_vector block_products(const byte_vector (&words)[block_words],
                                     const i32_vector (&query)[block_words], std::int32_t offset) {
  auto sum = pair_products(words[0], query[0]);
#if HWY_TARGET <= HWY_AVX3
  HWY_UNROLL(8)
  for (std::size_t i = 1; i < block_words; ++i)
    sum = _mm512_add_epi16(sum, pair_products(words[i], query[i]));
  const i32_vector whole{_mm512_madd_epi16(sum, _mm512_set1_epi16(1))};
#else
  HWY_UNROLL(8)
  for (std::size_t i = 1; i < block_words; ++i)
    sum = _mm256_add_epi16(sum, pair_products(words[i], query[i]));
  const i32_vector whole{_mm256_madd_epi16(sum, _mm256_set1_epi16(1))};
#endif
  return hn::Add(whole, hn::Set(i32_tag{}, offset));
}

/// Products of all heads with the group's keys, block after block.
HWY_INLINE void multiply_group(const index_query& query, const key_group& group) {
  for (std::size_t block = 0; block < query.blocks; ++block) {
    byte_vector words[group_vectors][block_words];
    f32_vector scales[group_vectors];
    for (std::size_t v = 0; v < group_vectors; ++v) {
      load_words(group.codes + (block * group_vectors + v) * width * block_bytes, words[v]);
      scales[v] = hn::BitCast(f32_tag{}, hn::ShiftLeft<23>(load_scale_bytes(group, block, v)));
    }
    for (std::size_t head = 0; head < query.heads; ++head) {
      const std::size_t at = block * query.heads + head;
      i32_vector codes[block_words];
      HWY_UNROLL(8)
      for (std::size_t i = 0; i < block_words; ++i)
        codes[i] = hn::Set(i32_tag{}, query.codes[at * block_words + i]);
      for (std::size_t v = 0; v < group_vectors; ++v) {
        const auto sum =
            hn::ConvertTo(f32_tag{}, block_products(words[v], codes, query.offsets[at]));
        const auto scale = hn::Mul(scales[v], set(query.scales[at]));
        float* total = group.totals + head * group_keys + v * width;
        store(block == 0 ? hn::Mul(sum, scale) : hn::MulAdd(sum, scale, load(total)), total);
      }
    }
  }
}

/// bf16 of a normal number of at most 2^111, or zero: adding 2^16 times its power of two leaves
/// eight bits of it, ties to even.
HWY_INLINE f32_vector round_normal(f32_vector value) {
  const auto power = hn::And(value, hn::BitCast(f32_tag{}, hn::Set(u32_tag{}, 0xff800000U)));
  const auto factor = set(65536.0F);
  return hn::NegMulAdd(power, factor, hn::MulAdd(power, factor, value));
}

/// Scores of the first `count` keys of the group, heads ascending.
HWY_INLINE void combine_group(const index_query& query, const key_group& group, std::size_t count,
                              bf16* scores) {
  for (std::size_t j = 0; j < count; j += width) {
    auto sum = zero();
    for (std::size_t head = 0; head < query.heads; ++head) {
      const auto positive = hn::Max(load(group.totals + head * group_keys + j), zero());
      const auto term = hn::Mul(round_normal(positive), set(query.weights[head]));
      sum = hn::Add(sum, round_normal(term));
    }
    store_first(sum, scores + j, count - j);
  }
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
