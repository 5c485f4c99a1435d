// Goal: grids and token counts of any picture are those of the released planning functions. Method:
// their recorded answers; properties over random sizes.
#include "runtime/image/plan.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>

#include "kernels/base/check.hpp"
#include "tests/unit/runtime/image/pixels.hpp"

using namespace cedar;
using namespace cedar::image;

BOOST_AUTO_TEST_SUITE(image_plan_of_a_size)

BOOST_AUTO_TEST_CASE(is_the_recorded_one) {
  for (const auto& v : test::image_vectors("released/image_geometry_vectors.json")) {
    const auto number = [&](const char* key) { return v.at(key).get<std::uint32_t>(); };
    const image_plan plan =
        plan_image(number("width"), number("height"), {.pixels_min = number("min_pixels")});
    BOOST_TEST_CONTEXT(number("width") << " x " << number("height")) {
      BOOST_TEST(plan.width == number("resized_width"));
      BOOST_TEST(plan.height == number("resized_height"));
      BOOST_TEST(plan.patch_rows == number("vit_h"));
      BOOST_TEST(plan.patch_columns == number("vit_w"));
      BOOST_TEST(plan.token_rows == number("llm_h"));
      BOOST_TEST(plan.token_columns == number("llm_w"));
      BOOST_TEST(plan.span_tokens() == number("tokens"));
    }
  }
}

BOOST_AUTO_TEST_CASE(never_exceeds_the_tokens_of_a_span) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    // Sides of every magnitude up to the largest that there is.
    const std::uint32_t width = std::max(1U, static_cast<std::uint32_t>(random() >> random() % 32));
    const std::uint32_t height =
        std::max(1U, static_cast<std::uint32_t>(random() >> random() % 32));
    const image_rules rules{.tokens_max = 16 + static_cast<std::uint32_t>(random() % 2000),
                            .pixels_min = static_cast<std::uint32_t>(random() % 300000)};
    const image_plan plan = plan_image(width, height, rules);
    BOOST_TEST_CONTEXT(width << " x " << height << ", " << rules.tokens_max << " tokens, "
                             << rules.pixels_min << " pixels") {
      BOOST_REQUIRE_LE(plan.span_tokens(), rules.tokens_max);
      BOOST_REQUIRE_GE(plan.cells(), 1U);
      BOOST_REQUIRE_EQUAL(plan.patch_rows * rules.patch, plan.height);
      BOOST_REQUIRE_EQUAL(plan.patch_columns * rules.patch, plan.width);
      const auto again = plan_of_patches(plan.patch_rows, plan.patch_columns, rules);
      BOOST_REQUIRE((again == plan));
    }
  }
}

BOOST_AUTO_TEST_CASE(caps_the_ratio_where_a_configuration_has_one) {
  const image_plan free = plan_image(4200, 42, {});
  const image_plan capped = plan_image(4200, 42, {.wh_ratio_max = 10});
  BOOST_TEST(free.width == 4200U);
  BOOST_TEST(capped.width == 420U);
  BOOST_TEST(capped.height == 42U);
  BOOST_TEST((plan_image(420, 42, {.wh_ratio_max = 10}) == capped));
}

BOOST_AUTO_TEST_CASE(needs_a_picture) {
  BOOST_CHECK_THROW(plan_image(0, 5, {}), defect);
}

BOOST_AUTO_TEST_CASE(knows_grids_that_no_picture_has) {
  const image_rules rules{.tokens_max = 64};
  for (const auto& [rows, columns] :
       {std::pair{0U, 3U}, {3U, 0U}, {93U, 93U}, {0xffffffffU, 1U}, {1U, 193U}})
    BOOST_TEST(!plan_of_patches(rows, columns, rules));
  BOOST_TEST(plan_of_patches(1, 183, rules).has_value());  // 61 cells, newline, delimiters
  BOOST_TEST(!plan_of_patches(1, 184, rules).has_value());
}

BOOST_AUTO_TEST_CASE(lays_a_span_out_row_by_row) {
  const image_plan plan = plan_image(98, 112, {});  // 8 x 7 patches, 3 x 3 cells
  using enum span_token;
  const std::vector<span_token> expected{start, image,   image, image, newline, image,   image,
                                         image, newline, image, image, image,   newline, end};
  BOOST_TEST((span_layout(plan) == expected));
  BOOST_TEST(plan.span_tokens() == expected.size());
  BOOST_TEST(plan.cells() == 9U);
}

BOOST_AUTO_TEST_SUITE_END()
