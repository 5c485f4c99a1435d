// Goal: a file becomes the tower's input, and what is planned is what is made. Method: files of
// tests/data/image; patches by the definition, element by element.
#include "runtime/image/prepare.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/base/buffer.hpp"
#include "kernels/base/check.hpp"
#include "runtime/image/patches.hpp"
#include "runtime/image/resample.hpp"
#include "tests/unit/runtime/image/pixels.hpp"

using namespace cedar;
using namespace cedar::image;

BOOST_AUTO_TEST_SUITE(image_prepare)

BOOST_AUTO_TEST_CASE(flattens_patches_by_colour_row_and_column) {
  const rgb_image picture = test::noise(12, 8);
  kernels::matrix_buffer<kernels::bf16> patches(6, 48);
  write_patches(picture, 4, patches.view());
  for (std::size_t row = 0; row < 6; ++row)
    for (std::size_t i = 0; i < 48; ++i) {
      const std::size_t colour = i / 16;
      const std::size_t y = row / 3 * 4 + i % 16 / 4;
      const std::size_t x = row % 3 * 4 + i % 4;
      const float value = static_cast<float>(picture.row(y)[3 * x + colour]);
      const kernels::bf16 expected = kernels::to_bf16((value / 255.0F - 0.5F) / 0.5F);
      BOOST_REQUIRE((patches.view().row(row)[i] == expected));
    }
  BOOST_CHECK_THROW(write_patches(test::noise(12, 9), 4, patches.view()), defect);
  BOOST_CHECK_THROW(write_patches(test::noise(12, 4), 4, patches.view()), defect);
}

BOOST_AUTO_TEST_CASE(makes_what_was_planned) {
  const image_rules rules{.tokens_max = 64, .pixels_min = 56 * 56};
  for (const char* name : {"rgb.png", "baseline.jpg", "alpha.webp"}) {
    const auto file = test::image_file(name);
    const result<image_plan> plan = plan_file(file, rules);
    const result<prepared_image> made = prepare(file, rules);
    BOOST_REQUIRE(plan && made);
    BOOST_TEST((made->plan == *plan));
    BOOST_TEST(plan->width == 70U);  // 23 x 17 enlarged to 65 x 48, whole patches
    BOOST_TEST(plan->height == 56U);
    BOOST_TEST((made->pixels.width == 70U && made->pixels.height == 56U));
    BOOST_TEST((made->pixels.pixels == pad_to(decode(file).value(), 70, 56).value().pixels));
  }
}

BOOST_AUTO_TEST_CASE(passes_reasons_on) {
  BOOST_TEST(prepare({}, {}).error().message == "the image has no bytes");
  const auto file = test::image_file("rgb.png");
  BOOST_TEST(!prepare(std::span(file).first(60), {}));
  BOOST_TEST(!prepare(file, {}, {.pixels_max = 1}));
}

BOOST_AUTO_TEST_CASE(refuses_a_picture_that_scaling_would_erase) {
  const auto file = test::image_file("line.png");  // 20000 x 1
  const image_rules rules{.tokens_max = 64};
  const result<image_plan> plan = plan_file(file, rules);
  const result<prepared_image> made = prepare(file, rules);
  BOOST_REQUIRE(!plan && !made);
  for (const std::string& text : {plan.error().message, made.error().message})
    BOOST_TEST(text.find("20000 x 1 pixels is too narrow") != std::string::npos, text);
}

BOOST_AUTO_TEST_SUITE_END()
