// Quantising rows: activations to FP8, cache entries to every format of ops/entry_format.hpp.
#include "kernels/cpu/internal/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/entries.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/cpu/internal/decode-inl.hpp"
#include "kernels/cpu/internal/quantize-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cedar::kernels::cpu::HWY_NAMESPACE {

/// E2M1 codes (nearest, ties to the even code, saturating at 6) in 32-bit elements: the number of
/// midpoints below the magnitude; every second midpoint counts when it is met exactly.
HWY_INLINE hn::Vec<i32_tag> encode_e2m1(f32_vector value) {
  const i32_tag integers;
  const auto magnitude = hn::Abs(value);
  auto code = hn::Zero(integers);
  const auto count = [&](auto mask) HWY_ATTR {
    code = hn::Sub(code, hn::VecFromMask(integers, hn::RebindMask(integers, mask)));
  };
  count(hn::Gt(magnitude, set(0.25F)));
  count(hn::Ge(magnitude, set(0.75F)));
  count(hn::Gt(magnitude, set(1.25F)));
  count(hn::Ge(magnitude, set(1.75F)));
  count(hn::Gt(magnitude, set(2.5F)));
  count(hn::Ge(magnitude, set(3.5F)));
  count(hn::Gt(magnitude, set(5.0F)));
  const auto sign =
      hn::And(hn::BitCast(integers, hn::ShiftRight<28>(hn::BitCast(u32_tag{}, value))),
              hn::Set(integers, 8));
  return hn::Or(code, sign);
}

/// Packs `count` codes, two a byte, the even element in the low half.
HWY_INLINE void pack_nibbles(const std::uint8_t* codes, std::size_t count, std::uint8_t* packed) {
  for (std::size_t i = 0; i < count / 2; ++i)
    packed[i] = static_cast<std::uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
}

HWY_INLINE std::uint8_t quantize_fp4_e8m0_group(const bf16* x, std::uint8_t* packed) {
  const std::uint32_t bits = largest_bits(x, 32);
  if (bits >= infinity_bits) {
    std::memset(packed, 0, 16);
    return e8m0_nan;
  }
  const float largest = std::max(std::bit_cast<float>(bits), 6.0F * 0x1p-126F);
  const std::uint8_t scale = e8m0_ceiling(largest * (1.0F / 6.0F));
  const auto inverse = inverse_e8m0(scale);
  std::uint8_t codes[32];
  for (std::size_t i = 0; i < 32; i += width)
    store_codes(encode_e2m1(hn::Mul(load(x + i), inverse)), codes + i);
  pack_nibbles(codes, 32, packed);
  return scale;
}

/// The quotient by a scale that is no power of two: a division in binary32. It meets a midpoint
/// only if the exact quotient does, since element and scale have 8 and 4 significant bits.
HWY_INLINE std::uint8_t quantize_fp4_e4m3_group(const bf16* x, std::uint8_t* packed) {
  const std::uint32_t bits = largest_bits(x, 16);
  if (bits >= infinity_bits) {
    std::memset(packed, 0, 8);
    return e4m3_nan;
  }
  const float largest = std::max(std::bit_cast<float>(bits), 6.0F * 0x1p-9F);
  const auto scale = static_cast<std::uint8_t>(hn::GetLane(encode_e4m3(set(largest / 6.0F))));
  const auto divisor = set(e4m3_values[scale]);
  std::uint8_t codes[16];
  for (std::size_t i = 0; i < 16; i += width)
    store_codes(encode_e2m1(hn::Div(load(x + i), divisor)), codes + i);
  pack_nibbles(codes, 16, packed);
  return scale;
}

void quantize_fp8_rows(const quantize_fp8_arguments& a, workers threads) {
  threads.split(a.x.rows, 1, 8 * a.x.cols, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    for (std::size_t row = begin; row < end; ++row)
      quantize_fp8_row(a.x.row_data(row), a.x.cols, a.codes.row_data(row), a.scales.row_data(row));
  });
}

void pack_entry(entry_format format, const bf16* x, std::size_t size, std::uint8_t* entry) {
  std::uint8_t* scales = entry + code_bytes(format, size);
  switch (format) {
    case entry_format::bf16:
      std::memcpy(entry, x, 2 * size);
      return;
    case entry_format::fp8_e8m0_32:
      for (std::size_t group = 0; group < size / 32; ++group)
        scales[group] = quantize_fp8_group(x + 32 * group, entry + 32 * group);
      return;
    case entry_format::fp4_e4m3_16:
      for (std::size_t group = 0; group < size / 16; ++group)
        scales[group] = quantize_fp4_e4m3_group(x + 16 * group, entry + 8 * group);
      return;
    case entry_format::fp4_e8m0_32:
      for (std::size_t group = 0; group < size / 32; ++group)
        scales[group] = quantize_fp4_e8m0_group(x + 32 * group, entry + 16 * group);
      return;
  }
}

void pack_entries_rows(const pack_entries_arguments& a, workers threads) {
  threads.split(a.x.rows, 1, 8 * a.x.cols, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    for (std::size_t row = begin; row < end; ++row)
      pack_entry(a.format, a.x.row_data(row), a.x.cols,
                 reinterpret_cast<std::uint8_t*>(a.entries.row_data(row)));
  });
}

void unpack_entries_rows(const unpack_entries_arguments& a, workers threads) {
  const std::size_t size = a.x.cols;
  threads.split(a.x.rows, 1, 4 * size, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    for (std::size_t row = begin; row < end; ++row) {
      const std::byte* entry = a.entries.row_data(row);
      bf16* x = a.x.row_data(row);
      with_entries(a.format, {&entry, 1}, size, [&](const auto& rows) HWY_ATTR {
        for_each_block(
            rows, rows.row(0), 0, size, [&](std::size_t k, const lanes16(&values)[2]) HWY_ATTR {
              for (std::size_t i = 0; i < block_size && k + i < size; i += width)
                store_first(values[i / 16].part[i / width % parts], x + k + i, size - k - i);
            });
      });
    }
  });
}

/// Group by group: 32 values wait in the first-level cache.
void requantize_entries_rows(const requantize_entries_arguments& a, workers threads) {
  const std::size_t size = a.codes.cols;
  threads.split(a.codes.rows, 1, 8 * size, [&](std::size_t begin, std::size_t end) HWY_ATTR {
    for (std::size_t row = begin; row < end; ++row) {
      const auto* codes = reinterpret_cast<const std::uint8_t*>(a.entries.row_data(row));
      const coded_cursor at{codes, codes + size};
      for (std::size_t group = 0; group < a.scales.cols; ++group) {
        lanes16 values[2];
        e4m3_e8m0_format::block(at, 32 * group, values);
        bf16 x[32];
        for (std::size_t i = 0; i < 32; i += width)
          store(values[i / 16].part[i / width % parts], x + i);
        a.scales.row_data(row)[group] = quantize_fp8_group(x, a.codes.row_data(row) + 32 * group);
      }
    }
  });
}

}  // namespace cedar::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cedar::kernels::cpu {

HWY_EXPORT(quantize_fp8_rows);
HWY_EXPORT(pack_entries_rows);
HWY_EXPORT(unpack_entries_rows);
HWY_EXPORT(requantize_entries_rows);

void quantize_fp8(const quantize_fp8_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(quantize_fp8_rows)(arguments, threads);
}

void pack_entries(const pack_entries_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(pack_entries_rows)(arguments, threads);
}

/// What lies between the three is a row of a head: it stays in a cache.
void rms_norm_entries(const rms_norm_entries_arguments& arguments, workers threads) {
  rms_norm(arguments.norm, threads);
  rope(arguments.rope_part(), threads);
  pack_entries(arguments.pack_part(), threads);
}

void unpack_entries(const unpack_entries_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(unpack_entries_rows)(arguments, threads);
}

void requantize_entries(const requantize_entries_arguments& arguments, workers threads) {
  HWY_DYNAMIC_DISPATCH(requantize_entries_rows)(arguments, threads);
}

}  // namespace cedar::kernels::cpu
#endif
