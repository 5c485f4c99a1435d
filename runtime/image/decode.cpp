#include "runtime/image/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "runtime/image/internal/codecs.hpp"

namespace cedar::image {

namespace {

bool has_at(std::span<const std::byte> file, std::size_t offset, std::string_view magic) {
  if (file.size() < offset + magic.size()) return false;
  return std::ranges::equal(file.subspan(offset, magic.size()), magic, {}, {},
                            [](char c) { return static_cast<std::byte>(c); });
}

std::optional<image_format> format_of(std::span<const std::byte> file) {
  if (has_at(file, 0, "\x89PNG\r\n\x1a\n")) return image_format::png;
  if (has_at(file, 0, "\xff\xd8\xff")) return image_format::jpeg;
  if (has_at(file, 0, "RIFF") && has_at(file, 8, "WEBP")) return image_format::webp;
  return std::nullopt;
}

result<image_header> read_size(image_format format, std::span<const std::byte> file) {
  switch (format) {
    case image_format::png:
      return internal::png_header(file);
    case image_format::jpeg:
      return internal::jpeg_header(file);
    case image_format::webp:
      return internal::webp_header(file);
  }
  return fail(errc::defect, "an image format without a decoder");
}

}  // namespace

result<image_header> read_header(std::span<const std::byte> file, const image_limits& limits) {
  if (file.empty()) return fail(errc::invalid_argument, "the image has no bytes");
  if (file.size() > limits.bytes_max)
    return fail(errc::invalid_argument,
                fmt::format("the image has {} bytes, more than {}", file.size(), limits.bytes_max));
  const std::optional<image_format> format = format_of(file);
  if (!format)
    return fail(errc::invalid_argument, "the image is not a PNG, JPEG or WebP file; convert it");
  result<image_header> header = read_size(*format, file);
  if (!header) return header;
  if (header->width == 0 || header->height == 0)
    return fail(errc::invalid_argument, "the image has no pixels");
  if (std::uint64_t{header->width} * header->height > limits.pixels_max)
    return fail(errc::invalid_argument,
                fmt::format("the image has {} x {} pixels, more than {} in all; scale it down",
                            header->width, header->height, limits.pixels_max));
  return header;
}

result<rgb_image> decode(std::span<const std::byte> file, const image_limits& limits) {
  const result<image_header> header = read_header(file, limits);
  if (!header) return fail(header.error());
  rgb_image out(header->width, header->height);
  result<void> done;
  switch (header->format) {
    case image_format::png:
      done = internal::decode_png(file, out);
      break;
    case image_format::jpeg:
      done = internal::decode_jpeg(file, out);
      break;
    case image_format::webp:
      done = internal::decode_webp(file, out);
      break;
  }
  if (!done) return fail(done.error());
  return out;
}

}  // namespace cedar::image
