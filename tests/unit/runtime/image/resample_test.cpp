// Goal: scaled pictures are Pillow's, bit for bit. Method: Pillow's results of one noisy picture
// per shape (enlarged, shrunk, padded on either side, as it is).
#include "runtime/image/resample.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime/image/pixels.hpp"

using namespace cedar;
using namespace cedar::image;

BOOST_AUTO_TEST_SUITE(image_resample)

BOOST_AUTO_TEST_CASE(pads_as_pillow_does) {
  for (const auto& v : test::image_vectors("image/padded.json")) {
    const auto number = [&](const char* key) { return v.at(key).get<std::uint32_t>(); };
    const std::uint32_t width = number("target_width");
    const std::uint32_t height = number("target_height");
    BOOST_TEST_CONTEXT(number("width")
                       << " x " << number("height") << " to " << width << " x " << height) {
      const result<rgb_image> padded =
          pad_to(test::noise(number("width"), number("height")), width, height);
      BOOST_REQUIRE(padded);
      BOOST_TEST(padded->width == width);
      BOOST_TEST(padded->height == height);
      BOOST_TEST(test::digest(*padded) == v.at("fnv1a64").get<std::string>());
    }
  }
}

BOOST_AUTO_TEST_CASE(places_every_pixel_as_pillow_does) {
  test::check_same(pad_to(test::noise(40, 25), 28, 28).value(),
                   test::ppm_file("padded_40x25_to_28x28.ppm"));
}

BOOST_AUTO_TEST_CASE(refuses_a_picture_without_a_second_side) {
  const result<rgb_image> padded = pad_to(test::noise(1000, 1), 42, 42);
  BOOST_REQUIRE(!padded);
  BOOST_TEST(padded.error().message.find("too narrow") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
