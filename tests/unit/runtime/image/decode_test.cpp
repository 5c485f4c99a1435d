// Goal: decoded pixels are those of the released preprocessing's library, and whatever is no good
// picture is refused with a reason. Method: files of every kind with what Pillow makes of them;
// every file cut at every length; headers that lie.
#include "runtime/image/decode.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime/image/pixels.hpp"

namespace {

using namespace cedar;
using namespace cedar::image;
using namespace cedar::test;

std::string refusal(std::span<const std::byte> file, const image_limits& limits = {}) {
  const result<rgb_image> picture = decode(file, limits);
  if (picture) return "";
  BOOST_TEST((picture.error().code == errc::invalid_argument));
  return picture.error().message;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto all = std::as_bytes(std::span(text));
  return {all.begin(), all.end()};
}

/// A PNG header (IHDR with its checksum) and nothing behind it, of a declared size.
std::vector<std::byte> png_of_size(std::uint32_t width, std::uint32_t height) {
  std::string chunk = "IHDR";
  for (const std::uint32_t side : {width, height})
    for (int shift = 24; shift >= 0; shift -= 8) chunk += static_cast<char>(side >> shift);
  chunk += std::string("\x08\x02\0\0\0", 5);
  std::uint32_t crc = 0xffffffffU;
  for (const char c : chunk) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320U & (0U - (crc & 1U)));
  }
  std::string file = std::string("\x89PNG\r\n\x1a\n\0\0\0\x0d", 12) + chunk;
  for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(~crc >> shift);
  return bytes_of(file + std::string("\0\0\0\0IDAT", 8));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(image_decode)

BOOST_AUTO_TEST_CASE(gives_the_pixels_that_pillow_gives) {
  for (const auto& vector : image_vectors("image/decoded.json")) {
    const auto name = vector.at("file").get<std::string>();
    BOOST_TEST_CONTEXT(name) {
      const auto file = image_file(name);
      const result<image_header> header = read_header(file);
      BOOST_REQUIRE_MESSAGE(header, (header ? "" : header.error().message));
      BOOST_TEST(header->width == vector.at("width").get<std::uint32_t>());
      BOOST_TEST(header->height == vector.at("height").get<std::uint32_t>());
      const result<rgb_image> picture = decode(file);
      BOOST_REQUIRE_MESSAGE(picture, (picture ? "" : picture.error().message));
      BOOST_TEST(digest(*picture) == vector.at("fnv1a64").get<std::string>());
    }
  }
}

BOOST_AUTO_TEST_CASE(gives_them_in_reading_order) {
  check_same(decode(image_file("rgb.png")).value(), ppm_file("rgb.ppm"));
  check_same(decode(image_file("baseline.jpg")).value(), ppm_file("baseline.ppm"));
  check_same(decode(image_file("lossy.webp")).value(), ppm_file("lossy.ppm"));
}

BOOST_AUTO_TEST_CASE(names_the_format) {
  BOOST_TEST((read_header(image_file("rgb.png"))->format == image_format::png));
  BOOST_TEST((read_header(image_file("progressive.jpg"))->format == image_format::jpeg));
  BOOST_TEST((read_header(image_file("lossless.webp"))->format == image_format::webp));
}

// WebP and JPEG files may end with bytes that no pixel needs; a file without its last ones may be
// whole then. Whatever is accepted has every pixel.
BOOST_AUTO_TEST_CASE(refuses_a_file_that_ends_too_early) {
  for (const char* name : {"rgb.png", "interlaced.png", "baseline.jpg", "progressive.jpg",
                           "lossy.webp", "lossless.webp", "alpha.webp"})
    BOOST_TEST_CONTEXT(name) {
      const auto file = image_file(name);
      const result<rgb_image> whole = decode(file);
      BOOST_REQUIRE(whole);
      for (std::size_t bytes = 0; bytes < file.size(); ++bytes) {
        const auto part = std::span(file).first(bytes);
        const result<rgb_image> picture = decode(part);
        if (picture) {
          BOOST_TEST(bytes + 8 >= file.size(), bytes << " of " << file.size() << " bytes suffice");
          check_same(*picture, *whole);
        } else {
          BOOST_TEST(!picture.error().message.empty());
        }
      }
      BOOST_TEST(!decode(std::span(file).first(file.size() - 9)));
    }
}

BOOST_AUTO_TEST_CASE(refuses_a_file_whose_bits_were_turned) {
  auto file = image_file("rgb.png");
  file[file.size() - 20] ^= std::byte{1};  // in the compressed pixels, which a checksum covers
  BOOST_TEST(contains(refusal(file), "PNG file is damaged or truncated"));
}

BOOST_AUTO_TEST_CASE(refuses_what_is_no_picture) {
  BOOST_TEST(refusal({}) == "the image has no bytes");
  for (const auto& file : {image_file("other.gif"), image_file("decoded.json"), bytes_of("\xff")})
    BOOST_TEST(refusal(file) == "the image is not a PNG, JPEG or WebP file; convert it");
  BOOST_TEST(contains(refusal(image_file("cmyk.jpg")), "CMYK"));
  BOOST_TEST(contains(refusal(image_file("animation.webp")), "animation"));
}

BOOST_AUTO_TEST_CASE(refuses_a_size_before_anything_is_decoded) {
  const std::string text = refusal(png_of_size(1U << 30, 1U << 30));
  BOOST_TEST(contains(text, "1073741824 x 1073741824 pixels"));
  BOOST_TEST(contains(text, "scale it down"));
  BOOST_TEST(contains(refusal(png_of_size(8193, 8192)), "8193 x 8192 pixels, more than 67108864"));
  // Within the limit the file is read, and found short.
  BOOST_TEST(contains(refusal(png_of_size(8192, 8192)), "damaged or truncated"));
  BOOST_TEST(contains(refusal(png_of_size(0, 5)), "PNG"));
  // A JPEG's height lies behind its width, in the frame header.
  auto jpeg = image_file("baseline.jpg");
  for (std::size_t i = 0; i + 8 < jpeg.size(); ++i)
    if (jpeg[i] == std::byte{0xff} && jpeg[i + 1] == std::byte{0xc0})
      std::fill_n(jpeg.begin() + static_cast<std::ptrdiff_t>(i) + 5, 4, std::byte{0xf0});
  BOOST_TEST(contains(refusal(jpeg), "61680 x 61680 pixels"));
}

BOOST_AUTO_TEST_CASE(keeps_the_limits_it_is_given) {
  const auto file = image_file("rgb.png");
  BOOST_TEST(refusal(file, {.bytes_max = file.size(), .pixels_max = 23 * 17}) == "");
  BOOST_TEST(contains(refusal(file, {.bytes_max = file.size() - 1}), "bytes, more than"));
  BOOST_TEST(contains(refusal(file, {.pixels_max = 23 * 17 - 1}), "23 x 17 pixels"));
}

BOOST_AUTO_TEST_SUITE_END()
