#include "runtime/store/tensor_info.hpp"

#include <array>

namespace cedar::store {

std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape) noexcept {
  std::uint64_t count = 1;
  for (const std::uint64_t dimension : shape)
    if (__builtin_mul_overflow(count, dimension, &count)) return std::nullopt;
  return count;
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

std::optional<kernels::dtype> parse_dtype(std::string_view text) noexcept {
  using kernels::dtype;
  constexpr std::array all{dtype::f32, dtype::bf16, dtype::f8_e4m3, dtype::f8_e8m0, dtype::i8,
                           dtype::u8,  dtype::i16,  dtype::i32,     dtype::i64};
  for (const dtype type : all)
    if (to_string(type) == text) return type;
  return std::nullopt;
}

}  // namespace cedar::store
