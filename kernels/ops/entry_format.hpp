// How one cache entry (a latent vector, an index key, an index query head) is packed into bytes.
//
// Layout of an entry of width w: the codes of elements 0..w-1 in order, then one scale byte per
// group in order. FP4 codes are packed two a byte, low nibble = even element. Dequantised values are
// code * scale and are exact in bf16, so packed storage loses nothing against bf16 caches.
//
// Rules of the scales (released reference code; a = largest magnitude of the group, in fp32):
//   fp8_e8m0_32  E4M3 codes, s = 2^ceil(log2(max(a, 1e-4) * fl(1/448)))        window KV, activations
//   fp4_e4m3_16  E2M1 codes, s = E4M3(max(a, 6*2^-9) / 6), nearest even, saturating     main global KV
//   fp4_e8m0_32  E2M1 codes, s = 2^ceil(log2(max(a, 6*2^-126) * fl(1/6)))    index keys and queries
// where ceil(log2(x)) is taken on the bits: unbiased exponent, plus one if the mantissa is not zero.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cedar::kernels {

enum class entry_format : std::uint8_t {
  bf16,         ///< unpacked, 2 bytes an element, no scales
  fp8_e8m0_32,  ///< w + w/32 bytes
  fp4_e4m3_16,  ///< w/2 + w/16 bytes
  fp4_e8m0_32,  ///< w/2 + w/32 bytes
};

/// Elements that share one scale; 0 for bf16.
constexpr std::size_t group_size(entry_format format) noexcept {
  switch (format) {
    case entry_format::bf16: return 0;
    case entry_format::fp4_e4m3_16: return 16;
    case entry_format::fp8_e8m0_32:
    case entry_format::fp4_e8m0_32: return 32;
  }
  return 0;
}

/// Bytes of the codes of an entry of `width` elements.
constexpr std::size_t code_bytes(entry_format format, std::size_t width) noexcept {
  switch (format) {
    case entry_format::bf16: return width * 2;
    case entry_format::fp8_e8m0_32: return width;
    case entry_format::fp4_e4m3_16:
    case entry_format::fp4_e8m0_32: return width / 2;
  }
  return 0;
}

/// Bytes of a whole entry. `width` is a multiple of group_size(format).
constexpr std::size_t entry_bytes(entry_format format, std::size_t width) noexcept {
  const std::size_t group = group_size(format);
  return code_bytes(format, width) + (group == 0 ? 0 : width / group);
}

}  // namespace cedar::kernels
