// Element types of tensors, as they lie in files and in memory.
//
// The numeric formats are those of the released checkpoint (safetensors dtype names in brackets).
// Decoding and encoding of E4M3, E8M0 and E2M1 belongs to the backends: the reference and the fast
// implementations deliberately do not share it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cedar::kernels {

enum class dtype : std::uint8_t {
  f32,      ///< IEEE binary32 [F32]
  bf16,     ///< upper half of binary32 [BF16]
  f8_e4m3,  ///< finite-only E4M3, largest 448 [F8_E4M3]
  f8_e8m0,  ///< power of two, byte b means 2^(b-127), 255 is NaN [F8_E8M0]
  i8,       ///< also two packed E2M1 values, low nibble = even column [I8]
  u8,       ///< [U8]
  i16,      ///< [I16]
  i32,      ///< [I32]
  i64,      ///< [I64]
};

/// Bytes of one stored element (1 for packed FP4, which stores two values a byte).
constexpr std::size_t element_bytes(dtype type) noexcept {
  switch (type) {
    case dtype::f32:
    case dtype::i32: return 4;
    case dtype::bf16:
    case dtype::i16: return 2;
    case dtype::i64: return 8;
    case dtype::f8_e4m3:
    case dtype::f8_e8m0:
    case dtype::i8:
    case dtype::u8: return 1;
  }
  return 0;
}

/// The safetensors spelling, e.g. "F8_E4M3".
std::string_view to_string(dtype type) noexcept;

/// bfloat16: the upper 16 bits of a binary32. A trivially copyable storage type; arithmetic is done
/// in float.
struct bf16 {
  std::uint16_t bits = 0;

  friend bool operator==(const bf16&, const bf16&) = default;  ///< compares bits, not values
};

/// Exact.
constexpr float to_float(bf16 value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

/// Round to nearest, ties to even; NaN stays NaN.
constexpr bf16 to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return bf16{static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  return bf16{static_cast<std::uint16_t>(rounded >> 16)};
}

}  // namespace cedar::kernels
