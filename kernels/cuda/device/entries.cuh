// Packing and unpacking of entries: a thread has a group of 16 or 32 elements, which share a scale.
// Grid: x over the rows, y over the groups of a row.
#pragma once

#include "kernels/cuda/device/norm_row.cuh"
#include "kernels/cuda/device/packed.cuh"
#include "kernels/cuda/device/rotation.cuh"
#include "kernels/plan/rows.hpp"

namespace cedar::kernels::cuda {

/// The group of this thread; it may lie beyond the entry.
CEDAR_DEVICE unsigned own_group() {
  return block_index().y * plan::part_threads + thread_index();
}

CEDAR_DEVICE float largest_of(const float (&values)[32], unsigned count) {
  std::uint32_t largest = 0;  // as bits, magnitudes are in order, and NaN is above them all
  for (unsigned i = 0; i < count; ++i) {
    const std::uint32_t size = bits_of(values[i]) & 0x7fffffffU;
    largest = size > largest ? size : largest;
  }
  return float_of(largest);
}

/// Codes of a group and its scale, where they belong in the entry.
CEDAR_DEVICE void encode_group(const packed_format& of, std::uint8_t* entry, unsigned group,
                               const float (&values)[32]) {
  const std::uint8_t scale_code = encode_scale(of.format, largest_of(values, of.group));
  const float scale = decode_scale(of.format, scale_code);
  entry[of.code_bytes + group] = scale_code;
  const unsigned first = group * of.group;
  if (of.format == entry_format::fp8_e8m0_32) {
    for (unsigned i = 0; i < of.group; ++i)
      entry[first + i] = encode_e4m3(divide(values[i], scale));
    return;
  }
  for (unsigned i = 0; i < of.group; i += 2) {
    const std::uint32_t low = encode_e2m1(divide(values[i], scale));
    const std::uint32_t high = encode_e2m1(divide(values[i + 1], scale));
    entry[(first + i) / 2] = static_cast<std::uint8_t>(low | high << 4);
  }
}

/// Group `group` of row `row` of x [n, w] to its entry; it lies within the row.
CEDAR_DEVICE void pack_group(const packed_format& of, const global_rows<const bf16>& x,
                             const global_rows<std::uint8_t>& entries, std::size_t row,
                             unsigned group) {
  const unsigned first = group * of.group;
  const bf16* const from = x.at(row, first);
  std::uint8_t* const entry = entries.at(row, 0, entries.cols);
  const unsigned count = of.width - first < of.group ? of.width - first : of.group;
  if (of.format == entry_format::bf16) {
    for (unsigned i = 0; i < count; ++i) {
      entry[2 * (first + i)] = static_cast<std::uint8_t>(from[i].bits & 0xffU);
      entry[2 * (first + i) + 1] = static_cast<std::uint8_t>(from[i].bits >> 8);
    }
    return;
  }
  float values[32];
  for (unsigned i = 0; i < of.group; ++i) values[i] = widen(from[i]);
  encode_group(of, entry, group, values);
}

/// x [n, w] to entries of `of`.
CEDAR_KERNEL(plan::part_threads)
void pack(packed_format of, global_rows<const bf16> x, global_rows<std::uint8_t> entries) {
  const unsigned group = own_group();
  if (group * of.group < of.width) pack_group(of, x, entries, block_index().x, group);
}

/// What normalise, rotate_ends and pack do to a row, by one block. Grid: x over the rows.
CEDAR_KERNEL(sum_threads)
void pack_normalised(norm_problem norm, global_array<const std::int32_t> positions,
                     global_array<const float> frequencies, packed_format of,
                     global_rows<std::uint8_t> entries) {
  dynamic_shared shared;
  const std::size_t row = block_index().x, pairs = frequencies.size;
  normalise_row(shared.take<float>(sum_warps, "sums"), norm, row);
  sync_block();
  for (std::size_t pair = thread_index(); pair < pairs; pair += sum_threads) {
    const std::size_t first = of.width - 2 * pairs + 2 * pair;
    rotate(norm.y, row, first, first + 1, positions.load(row), frequencies.load(pair), false);
  }
  sync_block();
  const global_rows<const bf16> rotated{norm.y.data, norm.y.rows, norm.y.cols, norm.y.stride};
  for (unsigned group = thread_index(); group * of.group < of.width; group += sum_threads)
    pack_group(of, rotated, entries, row, group);
}

/// Entries of `of` to x [n, w].
CEDAR_KERNEL(plan::part_threads)
void unpack(packed_format of, global_rows<const std::uint8_t> entries, global_rows<bf16> x) {
  const unsigned group = own_group(), first = group * of.group;
  if (first >= of.width) return;
  const std::size_t row = block_index().x;
  const std::uint8_t* const entry = entries.at(row, 0, entries.cols);
  const unsigned count = of.width - first < of.group ? of.width - first : of.group;
  for (unsigned i = 0; i < count; ++i)
    x.store(row, first + i, round_bf16(decode_element(of, entry, first + i)));
}

/// Entries of fp8_e8m0_32 to activations: unpacked, and quantised by the same rule anew.
CEDAR_KERNEL(plan::part_threads)
void requantise(packed_format of, global_rows<const std::uint8_t> entries,
                global_rows<std::uint8_t> codes, global_rows<std::uint8_t> scales) {
  const unsigned group = own_group(), first = group * of.group;
  if (first >= of.width) return;
  const std::size_t row = block_index().x;
  const std::uint8_t* const entry = entries.at(row, 0, entries.cols);
  float values[32];
  for (unsigned i = 0; i < of.group; ++i)
    values[i] = widen(round_bf16(decode_element(of, entry, first + i)));
  const std::uint8_t scale_code = encode_scale(of.format, largest_of(values, of.group));
  const float scale = decode_scale(of.format, scale_code);
  scales.store(row, group, scale_code);
  for (unsigned i = 0; i < of.group; ++i)
    codes.store(row, first + i, encode_e4m3(divide(values[i], scale)));
}

}  // namespace cedar::kernels::cuda
