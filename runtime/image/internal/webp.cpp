#include <fmt/format.h>
#include <webp/decode.h>

#include "runtime/image/internal/codecs.hpp"

namespace cedar::image::internal {

namespace {

tl::unexpected<error> damaged(VP8StatusCode status) {
  return fail(errc::invalid_argument,
              fmt::format("the WebP file is damaged or truncated (libwebp status {})",
                          static_cast<int>(status)));
}

}  // namespace

result<image_header> webp_header(std::span<const std::byte> file) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(bytes_of(file), file.size(), &features);
  if (status != VP8_STATUS_OK) return damaged(status);
  if (features.has_animation != 0)
    return fail(errc::invalid_argument, "the WebP file is an animation; send one picture of it");
  return image_header{image_format::webp, static_cast<std::uint32_t>(features.width),
                      static_cast<std::uint32_t>(features.height)};
}

result<void> decode_webp(std::span<const std::byte> file, rgb_image& out) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    return fail(errc::io, "libwebp has another version than its headers");
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = out.pixels.data();
  config.output.u.RGBA.stride = static_cast<int>(3 * out.width);
  config.output.u.RGBA.size = out.pixels.size();
  const VP8StatusCode status = WebPDecode(bytes_of(file), file.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) return damaged(status);
  return {};
}

}  // namespace cedar::image::internal
