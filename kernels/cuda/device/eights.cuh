// Rows of bf16 in pieces of eight elements, the unit in which elementwise kernels read, quantise
// and write.
//
// Which thread has which piece does not depend on how the row lies in memory: rows that are aligned
// are moved sixteen bytes at a time, others element by element, and both give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/formats.cuh"
#include "kernels/cuda/device/views.cuh"

namespace cedar::kernels::cuda {

inline constexpr unsigned piece_elements = 8;

/// Pieces of a row of `cols` elements; the last one may be shorter.
CEDAR_ANYWHERE unsigned pieces_of(std::size_t cols) {
  return static_cast<unsigned>((cols + piece_elements - 1) / piece_elements);
}

/// Elements of piece `piece`: eight, or what is left of the row.
CEDAR_DEVICE unsigned piece_size(std::size_t cols, unsigned piece) {
  const std::size_t left = cols - std::size_t{piece} * piece_elements;
  return left < piece_elements ? static_cast<unsigned>(left) : piece_elements;
}

/// `count` elements from `from` on, widened; zeros follow.
CEDAR_DEVICE void load_eight(float (&to)[piece_elements], const bf16* from, unsigned count) {
  if (count == piece_elements && is_aligned(from, 16)) {
    const sixteen_bytes raw = *reinterpret_cast<const sixteen_bytes*>(from);
    for (unsigned i = 0; i < 4; ++i) {
      to[2 * i] = float_of(raw.words[i] << 16);
      to[2 * i + 1] = float_of(raw.words[i] & 0xffff0000U);
    }
    return;
  }
  for (unsigned i = 0; i < piece_elements; ++i) to[i] = i < count ? widen(from[i]) : 0.0F;
}

CEDAR_DEVICE void load_eight(float (&to)[piece_elements], const global_rows<const bf16>& from,
                             std::size_t row, unsigned piece) {
  const unsigned count = piece_size(from.cols, piece);
  load_eight(to, from.at(row, std::size_t{piece} * piece_elements, count), count);
}

/// Rounds the values, in place too, and stores those that lie within the row.
CEDAR_DEVICE void store_eight(float (&values)[piece_elements], const global_rows<bf16>& to,
                              std::size_t row, unsigned piece) {
  const unsigned count = piece_size(to.cols, piece);
  bf16* const target = to.at(row, std::size_t{piece} * piece_elements, count);
  sixteen_bytes raw;
  for (unsigned i = 0; i < piece_elements; ++i) values[i] = widen(round_bf16(values[i]));
  for (unsigned i = 0; i < 4; ++i) raw.words[i] = pack_exact(values[2 * i], values[2 * i + 1]);
  if (count == piece_elements && is_aligned(target, 16)) {
    *reinterpret_cast<sixteen_bytes*>(target) = raw;
    return;
  }
  for (unsigned i = 0; i < count; ++i) target[i] = round_bf16(values[i]);
}

/// The codes of a piece.
struct [[gnu::may_alias]] alignas(8) eight_bytes {
  std::uint8_t bytes[piece_elements];
};

/// Where activations are quantised to: E4M3 codes [n, k] and E8M0 scales [n, k/32].
struct quantised_rows {
  global_rows<std::uint8_t> codes;
  global_rows<std::uint8_t> scales;
};

/// Quantises by the rule of fp8_e8m0_32: lanes 4i to 4i + 3 of the warp hold a group of 32. `valid`
/// is the same for the lanes of a group; all lanes of the warp take part.
CEDAR_DEVICE void quantise_eight(const float (&values)[piece_elements], const quantised_rows& to,
                                 std::size_t row, unsigned piece, bool valid) {
  std::uint32_t largest = 0;  // as bits, magnitudes are in order, and NaN is above them all
  for (const float value : values) {
    const std::uint32_t size = bits_of(value) & 0x7fffffffU;
    largest = size > largest ? size : largest;
  }
  for (unsigned mask = 1; mask < 4; mask *= 2) {
    const std::uint32_t other = shuffle_xor(largest, mask);
    largest = other > largest ? other : largest;
  }
  if (!valid) return;
  const std::uint32_t least = bits_of(1e-4F);
  const float size = float_of(largest > least ? largest : least);
  const std::uint8_t scale = encode_e8m0_ceiling(size * (1.0F / 448.0F));
  const float inverse = scale == 255 ? decode_e8m0(scale) : decode_e8m0(254 - scale);
  eight_bytes codes;
  for (unsigned i = 0; i < piece_elements; ++i) codes.bytes[i] = encode_e4m3(values[i] * inverse);
  std::uint8_t* const target =
      to.codes.at(row, std::size_t{piece} * piece_elements, piece_elements);
  if (is_aligned(target, sizeof(codes)))
    *reinterpret_cast<eight_bytes*>(target) = codes;
  else
    for (unsigned i = 0; i < piece_elements; ++i) target[i] = codes.bytes[i];
  if (piece % 4 == 0) to.scales.store(row, piece / 4, scale);
}

}  // namespace cedar::kernels::cuda
