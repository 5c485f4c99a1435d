// Bounds that encode() keeps and decode() enforces. Texts and shapes are small by nature; the
// largest real ones (tap names, ranks) are far below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/flow/messages.hpp"

namespace cedar::wire::internal {

inline constexpr std::size_t checksum_bytes = 8;
inline constexpr std::size_t tap_name_bytes_max = 256;
inline constexpr std::size_t tap_extents_max = 8;

/// Rows that a block of this kind holds: all rows of its spans, or only the wanted ones.
inline std::uint64_t rows_implied(flow::row_kind kind, const std::vector<flow::row_span>& spans) {
  std::uint64_t rows = 0;
  for (const flow::row_span& span : spans) {
    rows += kind == flow::row_kind::head_input ? span.logits_count() : span.rows_count;
  }
  return rows;
}

/// Bytes of a tensor of this shape; nothing if the number overflows.
inline std::optional<std::uint64_t> shape_bytes(std::span<const std::uint32_t> shape,
                                                kernels::dtype type) {
  std::uint64_t bytes = kernels::element_bytes(type);
  for (const std::uint32_t extent : shape) {
    if (__builtin_mul_overflow(bytes, std::uint64_t{extent}, &bytes)) return std::nullopt;
  }
  return bytes;
}

}  // namespace cedar::wire::internal
