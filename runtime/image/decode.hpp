// Encoded images to pixels: PNG, JPEG and WebP, by their libraries, from bytes that anybody may
// have sent.
//
// 1. The size is read from the header and compared with the limits before anything is decoded: a
//    small file that declares a huge image costs nothing.
// 2. Damaged and truncated files are refused as a whole; no half-grey picture is ever described.
// 3. What is decoded: alpha is dropped, not blended; orientation tags, gamma and colour profiles
// are
//    not applied; of 16 bits the upper 8 count (the released preprocessing: Pillow's open and
//    convert("RGB")).
// Functions keep no state; any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/result.hpp"
#include "runtime/image/rgb_image.hpp"

namespace cedar::image {

struct image_limits {
  std::uint64_t bytes_max = std::uint64_t{32} << 20;  ///< of the encoded file
  std::uint64_t pixels_max = std::uint64_t{1} << 26;  ///< 64 Mi: 192 MiB when decoded
};

enum class image_format : std::uint8_t { png, jpeg, webp };

struct image_header {
  image_format format = image_format::png;
  std::uint32_t width = 0;  ///< pixels, at least 1
  std::uint32_t height = 0;  ///< pixels, at least 1
};

/// Format and size, within the limits. Errors: invalid_argument, with a text for whoever sent the
/// file: empty, of another type, damaged, without pixels, too large, animated.
result<image_header> read_header(std::span<const std::byte> file, const image_limits& limits = {});

/// The picture. Errors: those of read_header; invalid_argument for a file that is damaged or
/// truncated behind its header, and for CMYK.
result<rgb_image> decode(std::span<const std::byte> file, const image_limits& limits = {});

}  // namespace cedar::image
