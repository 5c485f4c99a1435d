// Images of prompts on their way to whoever embeds them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/base/ids.hpp"
#include "runtime/flow/payload.hpp"

namespace cedar::flow {

/// SHA-256 of an image's grid and pixels: equal digests, equal embeddings. What a prefix of a
/// prompt depends on besides its ids, which are the same for all images.
using image_digest = std::array<std::byte, 32>;

/// An image, and the span of positions that it takes in its prompt: delimiters and cells, all with
/// the image token's id.
struct prompt_image {
  std::uint32_t position = 0;  ///< first of the span
  std::uint32_t rows_count = 0;  ///< positions of the span
  std::uint32_t patch_rows = 0;  ///< the grid of patches
  std::uint32_t patch_columns = 0;
  /// RGB [patch_rows * patch, patch_columns * patch, 3] u8: decoded and scaled.
  payload_ref pixels;
  image_digest digest{};

  std::uint32_t end() const noexcept { return position + rows_count; }
};

struct request_image {
  request_id request;
  prompt_image image;
};

}  // namespace cedar::flow
