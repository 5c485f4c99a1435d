// Index products of packed FP4 keys in integers: exact, and therefore the bits of the canonical
// sum.
//
// internal/index_query.hpp has the bounds within which this holds; keys outside are the caller's.
// Keys lie side by side in the lanes; their codes become unsigned bytes (12 added), those of the
// query stay signed, and the products of four codes are added in 32-bit lanes.
#if defined(CEDAR_KERNELS_CPU_INDEX_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CEDAR_KERNELS_CPU_INDEX_INL
#undef CEDAR_KERNELS_CPU_INDEX_INL
#else
#define CEDAR_KERNELS_CPU_INDEX_INL
#endif

#include "kernels/cpu/internal/index_query.hpp"
#include "kernels/cpu/internal/lanes-inl.hpp"
#include "kernels/cpu/internal/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

/// Keys that are scored together: vectors of them share the loads of the query.
inline constexpr std::size_t group_vectors = width == 16 ? 2 : 1;
inline constexpr std::size_t group_keys = width * group_vectors;

using byte_tag = hn::Repartition<std::uint8_t, i32_tag>;
using byte_vector = hn::Vec<byte_tag>;
using i32_vector = hn::Vec<i32_tag>;

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
  const auto* from = reinterpret_cast<const std::uint8_t*>(key);
  const std::size_t blocks = query.blocks;
  const std::size_t place =
      lane / width * 4 * (width / 4) + lane % 4 * (width / 4) + lane % width / 4;
  std::uint8_t* codes = group.codes + place * block_bytes;
  std::uint8_t* bytes = group.scale_bytes + lane;
  for (std::size_t block = 0; block < blocks; ++block)
    std::memcpy(codes + block * block_bytes * group_keys, from + block * block_bytes, block_bytes);
  for (std::size_t block = 0; block < blocks; ++block)
    bytes[block * group_keys] = from[blocks * block_bytes + block];
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

#if HWY_TARGET <= HWY_AVX3_DL
/// sum += the products of four bytes each. Highway 1.0.3 does not enable the intrinsic.
HWY_INLINE i32_vector add_products(i32_vector sum, byte_vector key, i32_vector query) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(key.raw), "v"(query.raw));
  return sum;
}

/// The products of a block: `words` of the keys times four codes of the query each. Two chains, so
/// that few heads in flight hide their latency.
HWY_INLINE i32_vector block_products(const byte_vector (&words)[block_words],
                                     const i32_vector (&query)[block_words], std::int32_t offset) {
  auto even = hn::Set(i32_tag{}, offset);
  auto odd = hn::Zero(i32_tag{});
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < block_words; i += 2) {
    even = add_products(even, words[i], query[i]);
    odd = add_products(odd, words[i + 1], query[i + 1]);
  }
  return hn::Add(even, odd);
}
#else
#if HWY_TARGET <= HWY_AVX3
/// Sums of two products each, in 16 bits: at most 576.
HWY_INLINE __m512i pair_products(byte_vector key, i32_vector query) {
  return _mm512_maddubs_epi16(key.raw, query.raw);
}
HWY_INLINE __m512i add_pairs(__m512i a, __m512i b) {
  return _mm512_add_epi16(a, b);
}
HWY_INLINE i32_vector widen_pairs(__m512i sums) {
  return i32_vector{_mm512_madd_epi16(sums, _mm512_set1_epi16(1))};
}
#else
HWY_INLINE __m256i pair_products(byte_vector key, i32_vector query) {
  return _mm256_maddubs_epi16(key.raw, query.raw);
}
HWY_INLINE __m256i add_pairs(__m256i a, __m256i b) {
  return _mm256_add_epi16(a, b);
}
HWY_INLINE i32_vector widen_pairs(__m256i sums) {
  return i32_vector{_mm256_madd_epi16(sums, _mm256_set1_epi16(1))};
}
#endif

/// The products of a block: `words` of the keys times four codes of the query each. Sixteen of them
/// are added in 16 bits, at most 4608.
HWY_INLINE i32_vector block_products(const byte_vector (&words)[block_words],
                                     const i32_vector (&query)[block_words], std::int32_t offset) {
  auto sum = pair_products(words[0], query[0]);
  HWY_UNROLL(8)
  for (std::size_t i = 1; i < block_words; ++i)
    sum = add_pairs(sum, pair_products(words[i], query[i]));
  return hn::Add(widen_pairs(sum), hn::Set(i32_tag{}, offset));
}
#endif

/// Adds the products of a block to the totals of all heads; the first block begins them.
template <bool First>
HWY_INLINE void multiply_block(const index_query& query, const key_group& group,
                               std::size_t block) {
  byte_vector words[group_vectors][block_words];
  f32_vector scales[group_vectors];
  for (std::size_t v = 0; v < group_vectors; ++v) {
    load_words(group.codes + (block * group_vectors + v) * width * block_bytes, words[v]);
    scales[v] = hn::BitCast(f32_tag{}, hn::ShiftLeft<23>(load_scale_bytes(group, block, v)));
  }
  const std::size_t heads = query.heads;
  const std::int32_t* query_codes = query.codes + block * heads * block_words;
  const std::int32_t* query_offsets = query.offsets + block * heads;
  const float* query_scales = query.scales + block * heads;
  float* total = group.totals;
  for (std::size_t head = 0; head < heads; ++head, query_codes += block_words) {
    i32_vector codes[block_words];
    HWY_UNROLL(8)
    for (std::size_t i = 0; i < block_words; ++i) codes[i] = hn::Set(i32_tag{}, query_codes[i]);
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < group_vectors; ++v, total += width) {
      const auto sum =
          hn::ConvertTo(f32_tag{}, block_products(words[v], codes, query_offsets[head]));
      const auto scale = hn::Mul(scales[v], set(query_scales[head]));
      store(First ? hn::Mul(sum, scale) : hn::MulAdd(sum, scale, load(total)), total);
    }
  }
}

/// Products of all heads with the group's keys.
HWY_INLINE void multiply_group(const index_query& query, const key_group& group) {
  multiply_block<true>(query, group, 0);
  for (std::size_t block = 1; block < query.blocks; ++block)
    multiply_block<false>(query, group, block);
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
