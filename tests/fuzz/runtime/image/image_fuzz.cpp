// The input is an encoded image. What is accepted must have the size that its header declares and a
// span within the rules; header, plan and decoder must agree on what they refuse.
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/check.hpp"
#include "runtime/image/prepare.hpp"
#include "tests/support/fuzz_driver.hpp"

namespace cedar::test {

fuzz_material fuzz_corpus() {
  fuzz_material out;
  for (const char* name : {"rgb.png", "palette.png", "gray_alpha.png", "interlaced.png",
                           "rgb16_gamma.png", "baseline.jpg", "progressive.jpg", "gray.jpg",
                           "orientation.jpg", "lossy.webp", "lossless.webp", "alpha.webp"}) {
    std::ifstream file(std::string(CEDAR_TEST_DATA "/image/") + name, std::ios::binary);
    out.seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    CEDAR_ASSERT(!out.seeds.back().empty(), name);
  }
  out.words = {"IHDR",
               "IDAT",
               "PLTE",
               "tRNS",
               "IEND",
               "RIFF",
               "WEBP",
               "VP8 ",
               "VP8L",
               "VP8X",
               "ALPH",
               "ANIM",
               "\xff\xc0",
               "\xff\xc2",
               "\xff\xc4",
               "\xff\xda",
               "\xff\xd9",
               "\xff\xdd",
               "\xff\xff\xff\xff"};
  return out;
}

}  // namespace cedar::test

namespace {

using namespace cedar;

// Small, so that a mutated size costs no minute.
constexpr image::image_limits limits{.bytes_max = 1U << 16, .pixels_max = 1U << 16};
const image::image_rules rules{.tokens_max = 64, .pixels_min = 784};

std::uint32_t checksum(std::string_view chunk) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : chunk) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320U & (0U - (crc & 1U)));
  }
  return ~crc;
}

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char c : bytes.substr(0, 4)) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

/// A PNG file with the checksums that its chunks should have.
std::string with_checksums(std::string file) {
  constexpr std::size_t signature = 8;
  for (std::size_t at = signature; at + 12 <= file.size();) {
    const std::size_t length = big_endian(std::string_view(file).substr(at));
    if (length > file.size() - at - 12) break;
    const std::uint32_t crc = checksum(std::string_view(file).substr(at + 4, 4 + length));
    for (std::size_t i = 0; i < 4; ++i)
      file[at + 8 + length + i] = static_cast<char>(crc >> (24 - 8 * i));
    at += 12 + length;
  }
  return file;
}

void check(std::span<const std::byte> file) {
  const auto header = image::read_header(file, limits);
  const auto picture = image::decode(file, limits);
  const auto plan = image::plan_file(file, rules, limits);
  const auto prepared = image::prepare(file, rules, limits);
  for (const auto* failed : {header ? nullptr : &header.error(),
                             picture ? nullptr : &picture.error(), plan ? nullptr : &plan.error()})
    if (failed != nullptr) CEDAR_ASSERT(!failed->message.empty(), "no reason");
  if (!header) {
    CEDAR_ASSERT(!picture && !plan && !prepared, "decoded without a header");
    return;
  }
  if (picture) {
    CEDAR_ASSERT(picture->width == header->width && picture->height == header->height, "size");
    CEDAR_ASSERT(picture->pixels.size() == std::size_t{3} * header->width * header->height, "size");
  }
  CEDAR_ASSERT(prepared.has_value() == (picture && plan), "another judgement");
  if (prepared) {
    CEDAR_ASSERT(prepared->plan == *plan && plan->span_tokens() <= rules.tokens_max, "tokens");
    CEDAR_ASSERT(prepared->pixels.width == plan->width && prepared->pixels.height == plan->height,
                 "pixels");
    const auto again = image::plan_of_patches(plan->patch_rows, plan->patch_columns, rules);
    CEDAR_ASSERT(again == *plan, "the grid gives another plan");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check(std::as_bytes(std::span(data, size)));
  // Again with right checksums: most mutations of a PNG file end at the first wrong one.
  const std::string file(reinterpret_cast<const char*>(data), size);
  if (file.starts_with("\x89PNG")) {
    const std::string repaired = with_checksums(file);
    check(std::as_bytes(std::span(repaired)));
  }
  return 0;
}
