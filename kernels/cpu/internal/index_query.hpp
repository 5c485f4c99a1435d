// A row's index query, prepared for products with keys in integers.
//
// Twice an E2M1 code is an integer of at most 12, so a block of 32 has an exact integer product. In
// the canonical order a product of a head and a key adds multiples of one unit, 2^-2 times the
// smallest scale of a pair of blocks; while their magnitudes add up to at most 2^24 units, every
// partial sum is a binary32 number and no order rounds: integers, added in any order, give its
// bits. The bounds on the scales of a key grant this, and they keep what follows (a product with a
// weight, roundings to bf16) within normal numbers. Keys outside, NaN scales and, as a rule, keys
// with a block of zeros among them, need the canonical order itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/base/dtype.hpp"
#include "kernels/base/matrix_view.hpp"
#include "kernels/cpu/internal/scratch.hpp"

namespace cedar::kernels::cpu {

inline constexpr std::size_t index_block = 32;
/// Bytes of the codes of a block, and 32-bit numbers that they become, a byte a code.
inline constexpr std::size_t block_bytes = index_block / 2;
inline constexpr std::size_t block_words = index_block / 4;
/// What is added to twice a code of a key.
inline constexpr int code_offset = 12;
/// Twice the E2M1 values, plus code_offset.
alignas(16) inline constexpr std::uint8_t offset_codes[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                                              12, 11, 10, 9,  8,  6,  4,  0};

struct index_query {
  std::size_t heads = 0;
  std::size_t blocks = 0;
  /// [blocks, heads, block_words]: twice the codes as signed bytes; of each 8 the even ones, then
  /// the odd ones, as the bytes of a key are.
  std::int32_t* codes = nullptr;
  std::int32_t* offsets = nullptr;  ///< [blocks, heads]: takes code_offset back
  float* scales = nullptr;  ///< [blocks, heads]: a quarter of the block's scale
  float* weights = nullptr;  ///< [heads]
  /// Scale bytes of a key: each within [lowest, highest], at most `spread` apart.
  std::int32_t lowest = 0;
  std::int32_t highest = -1;
  std::int32_t spread = -1;
};

/// packed: [heads, entry_bytes(fp4_e8m0_32, 32 * blocks)]; weights: [heads]. In the memory of
/// `frame`.
index_query prepare_index_query(scratch& frame, const matrix_view<const std::byte>& packed,
                                std::span<const bf16> weights, std::size_t blocks);

}  // namespace cedar::kernels::cpu
