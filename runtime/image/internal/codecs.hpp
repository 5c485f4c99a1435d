// One header and one body function per library; each library is known to its own .cpp file alone.
//
// *_header: format and size as the file declares them, unchecked. decode_*: fills all pixels of
// `out`, which has the declared size. Errors: invalid_argument, naming the format.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/image/decode.hpp"

namespace cedar::image::internal {

/// As the libraries take it; in C++, char types alias all others.
inline const unsigned char* bytes_of(std::span<const std::byte> file) {
  return reinterpret_cast<const unsigned char*>(file.data());
}

result<image_header> png_header(std::span<const std::byte> file);
result<void> decode_png(std::span<const std::byte> file, rgb_image& out);

result<image_header> jpeg_header(std::span<const std::byte> file);
result<void> decode_jpeg(std::span<const std::byte> file, rgb_image& out);

result<image_header> webp_header(std::span<const std::byte> file);
result<void> decode_webp(std::span<const std::byte> file, rgb_image& out);

}  // namespace cedar::image::internal
