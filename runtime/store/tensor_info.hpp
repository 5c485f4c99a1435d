// What a safetensors header says about one tensor, and a typed view of its bytes.
//
// Shapes are in elements of the stored dtype; packed FP4 (I8) counts two values an element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kernels/base/check.hpp"
#include "kernels/base/dtype.hpp"

namespace cedar::store {

struct tensor_info {
  std::string name;
  kernels::dtype dtype = kernels::dtype::u8;
  std::vector<std::uint64_t> shape;  ///< row-major; empty for a scalar
  std::uint32_t file = 0;  ///< index of the file in checkpoint::files()
  std::uint64_t offset = 0;  ///< of the first byte, from the start of the file
  std::uint64_t bytes = 0;  ///< product of the shape times the element's bytes
};

/// Product of the shape; nothing if it does not fit 64 bits.
std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape) noexcept;

/// "[24, 20480]".
std::string shape_text(std::span<const std::uint64_t> shape);

/// The dtype of a safetensors spelling ("F8_E4M3"); nothing for one that cedar has no use for.
std::optional<kernels::dtype> parse_dtype(std::string_view text) noexcept;

/// True if the elements of `type` are stored as T: float, bf16, std::int8_t .. std::int64_t, or
/// std::uint8_t and std::byte for every dtype of one byte.
template <class T>
constexpr bool stores(kernels::dtype type) noexcept {
  using kernels::dtype;
  if constexpr (std::is_same_v<T, float>) return type == dtype::f32;
  if constexpr (std::is_same_v<T, kernels::bf16>) return type == dtype::bf16;
  if constexpr (std::is_same_v<T, std::int8_t>) return type == dtype::i8;
  if constexpr (std::is_same_v<T, std::int16_t>) return type == dtype::i16;
  if constexpr (std::is_same_v<T, std::int32_t>) return type == dtype::i32;
  if constexpr (std::is_same_v<T, std::int64_t>) return type == dtype::i64;
  if constexpr (std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::byte>)
    return kernels::element_bytes(type) == 1;
  return false;
}

/// The bytes of a tensor, aligned for its dtype. Valid while the reader or checkpoint lives.
struct tensor_view {
  const tensor_info* info = nullptr;
  std::span<const std::byte> bytes;

  /// The elements, row-major. Asking for another type than the stored one is a defect.
  template <class T>
  std::span<const T> as() const {
    CEDAR_REQUIRE(info != nullptr && stores<T>(info->dtype),
                  info == nullptr ? std::string("empty view")
                                  : info->name + " is " + std::string(to_string(info->dtype)));
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

}  // namespace cedar::store
