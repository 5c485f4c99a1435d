// libjpeg-turbo's TurboJPEG interface, with the integer DCT and smooth chroma of its defaults, so
// that pixels are those of the released preprocessing.
#include <turbojpeg.h>

#include <memory>
#include <string>

#include "runtime/image/internal/codecs.hpp"

namespace cedar::image::internal {

namespace {

struct release {
  void operator()(void* decoder) const noexcept { tjDestroy(decoder); }
};
using decoder_handle = std::unique_ptr<void, release>;

tl::unexpected<error> damaged(const decoder_handle& decoder) {
  return fail(errc::invalid_argument, std::string("the JPEG file is damaged or truncated (") +
                                          tjGetErrorStr2(decoder.get()) + ")");
}

result<image_header> header_of(const decoder_handle& decoder, std::span<const std::byte> file) {
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colours = 0;
  if (tjDecompressHeader3(decoder.get(), bytes_of(file), file.size(), &width, &height, &subsampling,
                          &colours) != 0)
    return damaged(decoder);
  if (colours == TJCS_CMYK || colours == TJCS_YCCK)
    return fail(errc::invalid_argument, "the JPEG file has CMYK colours; convert it to RGB");
  return image_header{image_format::jpeg, static_cast<std::uint32_t>(width),
                      static_cast<std::uint32_t>(height)};
}

}  // namespace

result<image_header> jpeg_header(std::span<const std::byte> file) {
  const decoder_handle decoder(tjInitDecompress());
  return header_of(decoder, file);
}

result<void> decode_jpeg(std::span<const std::byte> file, rgb_image& out) {
  const decoder_handle decoder(tjInitDecompress());
  const result<image_header> header = header_of(decoder, file);
  if (!header) return fail(header.error());
  // A progressive file of very many scans would take minutes.
  const int flags = TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS;
  if (tjDecompress2(decoder.get(), bytes_of(file), file.size(), out.pixels.data(),
                    static_cast<int>(out.width), 0, static_cast<int>(out.height), TJPF_RGB,
                    flags) != 0)
    return damaged(decoder);
  return {};
}

}  // namespace cedar::image::internal
