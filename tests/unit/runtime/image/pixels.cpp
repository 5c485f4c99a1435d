#include "tests/unit/runtime/image/pixels.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstring>

#include "tests/support/temporary_folder.hpp"

namespace cedar::test {

std::vector<std::byte> image_file(const std::string& name) {
  const std::string content = read_file(std::string(CEDAR_TEST_DATA) + "/image/" + name);
  std::vector<std::byte> bytes(content.size());
  std::memcpy(bytes.data(), content.data(), content.size());
  return bytes;
}

nlohmann::json image_vectors(const std::string& path) {
  return nlohmann::json::parse(read_file(std::string(CEDAR_TEST_DATA) + "/" + path));
}

image::rgb_image ppm_file(const std::string& name) {
  const std::string content = read_file(std::string(CEDAR_TEST_DATA) + "/image/" + name);
  unsigned width = 0;
  unsigned height = 0;
  BOOST_REQUIRE_EQUAL(std::sscanf(content.c_str(), "P6\n%u %u\n255\n", &width, &height), 2);
  image::rgb_image out(width, height);
  BOOST_REQUIRE(content.size() > out.pixels.size());
  std::memcpy(out.pixels.data(), content.data() + content.size() - out.pixels.size(),
              out.pixels.size());
  return out;
}

std::string digest(const image::rgb_image& picture) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::uint8_t value : picture.pixels) hash = (hash ^ value) * 0x100000001b3ULL;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

image::rgb_image noise(std::uint32_t width, std::uint32_t height) {
  image::rgb_image out(width, height);
  std::uint32_t state = 1;
  for (std::uint8_t& value : out.pixels) {
    state = 1664525U * state + 1013904223U;
    value = static_cast<std::uint8_t>(state >> 24);
  }
  return out;
}

void check_same(const image::rgb_image& actual, const image::rgb_image& expected) {
  BOOST_REQUIRE_EQUAL(actual.width, expected.width);
  BOOST_REQUIRE_EQUAL(actual.height, expected.height);
  for (std::size_t i = 0; i < expected.pixels.size(); ++i)
    if (actual.pixels[i] != expected.pixels[i]) {
      BOOST_ERROR("pixel " << i / 3 % expected.width << ", " << i / 3 / expected.width << " colour "
                           << i % 3 << ": " << int{actual.pixels[i]} << " instead of "
                           << int{expected.pixels[i]});
      return;
    }
}

}  // namespace cedar::test
