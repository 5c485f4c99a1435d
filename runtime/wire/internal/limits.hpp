// Bounds that encode() keeps and decode() enforces. Texts and shapes are small by nature; the
// largest real ones (tap names, ranks) are far below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "runtime/flow/messages.hpp"

namespace cedar::wire::internal {

inline constexpr std::size_t checksum_bytes = 8;
inline constexpr std::size_t tap_name_bytes_max = 256;
inline constexpr std::size_t tap_extents_max = 8;

/// False for NaN.
inline bool is_probability(float value) noexcept {
  return value >= 0 && value <= 1;
}

/// In place of the highest bit of a span's rows: `begin` and `stored` follow.
inline constexpr std::uint32_t replay_flag = std::uint32_t{1} << 31;
/// In place of the two bits below it: flow::tap_use.
inline constexpr std::uint32_t tap_use_shift = 29;
inline constexpr std::uint32_t tap_use_mask = std::uint32_t{3} << tap_use_shift;
/// A span has fewer rows.
inline constexpr std::uint32_t span_rows_limit = std::uint32_t{1} << tap_use_shift;
/// `finished` of a commitment: 0, 1, or this: over, and what is kept follows.
inline constexpr std::uint8_t finished_and_kept = 2;

/// Whether the span's first row and its prefix can be so.
inline bool replay_fits(const flow::row_span& span) noexcept {
  return span.begin <= span.first_position && (span.begin == 0 || span.begin < span.stored);
}

/// Whether a block of this kind can have that many rows. What depends on the model (ratios, the
/// decoder's first layer, how many positions or experts were chosen, columns, the window) is left
/// to the stage, which knows it.
inline bool rows_fit(flow::row_kind kind, const std::vector<flow::row_span>& spans,
                     std::uint64_t rows) {
  std::uint64_t all = 0;
  std::uint64_t wanted = 0;
  for (const flow::row_span& span : spans) {
    all += span.rows_count;
    wanted += span.logits_count();
  }
  switch (kind) {
    case flow::row_kind::embedded:
    case flow::row_kind::engram_rows:
      return rows == all;
    case flow::row_kind::head_input:
      return rows == wanted;
    case flow::row_kind::gathered:
    case flow::row_kind::draft_taps:
    case flow::row_kind::expert_outputs:
    case flow::row_kind::engram_slots:
      return true;
    case flow::row_kind::activation:
    case flow::row_kind::shared_kv:
    case flow::row_kind::index_keys:
    case flow::row_kind::selection:
    case flow::row_kind::candidates:
    case flow::row_kind::gather_request:
    case flow::row_kind::image_rows:
    case flow::row_kind::expert_rows:
    case flow::row_kind::index_query:
    case flow::row_kind::pool_query:
    case flow::row_kind::index_choice:
    case flow::row_kind::pool_choice:
      return rows <= all;
  }
  return false;
}

/// Whether an image with `bytes` bytes of pixels can be so: as many RGB pixels in each patch, and
/// positions that do not overflow. How large a patch is, is left to the tower, which knows it.
inline bool image_fits(const flow::prompt_image& image, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t channels = 3;
  std::uint64_t unit = 0;
  return image.rows_count > 0 && image.patch_rows > 0 && image.patch_columns > 0 && bytes > 0 &&
         image.rows_count <= std::numeric_limits<std::uint32_t>::max() - image.position &&
         !__builtin_mul_overflow(channels * image.patch_rows, std::uint64_t{image.patch_columns},
                                 &unit) &&
         bytes % unit == 0;
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
