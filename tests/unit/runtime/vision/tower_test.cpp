// Goal: the tower maps its own tensors only, refuses what it cannot compute, and gives an image the
// same bits whatever else happens. Method: the checkpoint tiny-vision; noise as images.
#include "runtime/vision/tower.hpp"

#include <tbb/global_control.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>

#include "kernels/base/check.hpp"
#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/reference/reference_backend.hpp"

using namespace cedar;
using kernels::bf16;

namespace {

struct opened {
  model::model_config config;
  store::checkpoint checkpoint;

  explicit opened(const std::string& name)
      : config(model::parse_config(folder(name) + "/config.json").value()),
        checkpoint(store::checkpoint::open(folder(name)).value()) {}

  static std::string folder(const std::string& name) {
    return std::string(CEDAR_TEST_DATA) + "/golden/" + name;
  }
};

kernels::matrix_buffer<bf16> noise(std::size_t rows, std::size_t columns, std::uint32_t seed) {
  std::mt19937 random(seed);
  kernels::matrix_buffer<bf16> out(rows, columns);
  for (bf16& value : out.span())
    value = kernels::to_bf16(static_cast<float>(random() % 256) / 127.5F - 1);
  return out;
}

struct picture {
  image::image_plan plan;
  kernels::matrix_buffer<bf16> patches;

  picture(std::uint32_t width, std::uint32_t height, const opened& model)
      : plan(image::plan_image(width, height, vision::rules_of(model.config.vision))),
        patches(noise(plan.patches(), 588, width)) {}
};

bool same(const kernels::matrix_buffer<bf16>& a, const kernels::matrix_buffer<bf16>& b) {
  return std::ranges::equal(a.span(), b.span());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(vision_tower)

BOOST_AUTO_TEST_CASE(maps_the_towers_tensors_and_no_others) {
  const opened model("tiny-vision");
  const auto weights = vision::load_tower(model.checkpoint, model.config);
  BOOST_REQUIRE_MESSAGE(weights, (weights ? "" : weights.error().message));
  std::size_t expected = 0;
  for (const store::tensor_info& tensor : model.checkpoint.tensors()) {
    const bool mine = tensor.name.starts_with("vision.") || tensor.name.starts_with("aligner.") ||
                      tensor.name.starts_with("image_");
    expected += mine ? 1U : 0U;
  }
  const auto touched = model.checkpoint.touched();
  BOOST_TEST(touched.size() == expected);
  for (const std::string& name : touched)
    BOOST_TEST(
        (name.starts_with("vision.") || name.starts_with("aligner.") || name.starts_with("image_")),
        name);
}

BOOST_AUTO_TEST_CASE(names_what_is_missing) {
  const opened text("tiny-12");
  const auto none = vision::load_tower(text.checkpoint, text.config);
  BOOST_REQUIRE(!none);
  BOOST_TEST(none.error().message.find("no vision tower") != std::string::npos);
  opened other("tiny-vision");
  other.config.vision.inner = 97;
  const auto mismatch = vision::load_tower(other.checkpoint, other.config);
  BOOST_REQUIRE(!mismatch);
  BOOST_TEST((mismatch.error().code == errc::mismatch));
  BOOST_TEST(mismatch.error().message.find("vision.blocks.0.mlp.w1.weight is BF16 [192, 64]") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(refuses_plans_and_patches_that_do_not_fit) {
  const opened model("tiny-vision");
  const auto backend = kernels::make_cpu_backend();
  auto tower = vision::tower::open(model.checkpoint, model.config, *backend).value();
  const picture good(70, 42, model);
  const auto refused = [&](auto spoil) {
    image::image_plan plan = good.plan;
    spoil(plan);
    const auto embedded = tower.embed(plan, good.patches.view());
    BOOST_REQUIRE(!embedded);
    BOOST_TEST((embedded.error().code == errc::invalid_argument));
  };
  refused([](image::image_plan& plan) { plan.token_rows = 7; });
  refused([](image::image_plan& plan) { plan.patch_rows = 0; });
  refused([](image::image_plan& plan) { plan.patch_columns += 1; });
  refused([](image::image_plan& plan) {  // more tokens than a span may have
    plan.patch_rows = plan.patch_columns = 40;
    plan.token_rows = plan.token_columns = 14;
  });
  refused([](image::image_plan& plan) {  // products beyond 32 bits
    plan.patch_rows = plan.patch_columns = 0xffffffff;
    plan.token_rows = plan.token_columns = 0x55555555;
  });
  BOOST_TEST(!tower.embed(good.plan, good.patches.view().rows_from(0, 14)));
  BOOST_TEST(!tower.embed(good.plan, good.patches.view().cols_from(0, 587)));
  BOOST_TEST(tower.embed(good.plan, good.patches.view()).has_value());
}

BOOST_AUTO_TEST_CASE(puts_delimiters_around_the_cells) {
  const opened model("tiny-vision");
  const auto backend = kernels::make_cpu_backend();
  const auto tower = vision::tower::open(model.checkpoint, model.config, *backend).value();
  const auto& delimiters = tower.weights().delimiters;
  const picture image(70, 84, model);  // 6 x 5 patches, 2 x 2 cells
  const auto aligned = noise(4, model.config.width, 1);
  kernels::matrix_buffer<bf16> span(8, model.config.width);
  vision::write_span(delimiters, image.plan, aligned.view(), span.view());
  const std::vector<std::span<const bf16>> expected{
      delimiters.start,      aligned.view().row(0), aligned.view().row(1), delimiters.newline,
      aligned.view().row(2), aligned.view().row(3), delimiters.newline,    delimiters.end};
  for (std::size_t row = 0; row < expected.size(); ++row)
    BOOST_TEST((std::ranges::equal(span.view().row(row), expected[row])), "row " << row);
  BOOST_CHECK_THROW(
      vision::write_span(delimiters, image.plan, aligned.view().rows_from(0, 3), span.view()),
      defect);
}

// 49 x 3 patches and more are several tiles of queries and several pieces of the MLP's rows.
BOOST_AUTO_TEST_CASE(an_image_has_the_same_bits_on_any_number_of_threads) {
  const tbb::global_control enough(tbb::global_control::max_allowed_parallelism, 8);
  opened model("tiny-vision");
  model.config.vision.max_image_tokens = 1024;
  for (const auto& [width, height] : {std::pair{14U, 14U}, {98U, 112U}, {420U, 392U}}) {
    const picture image(width, height, model);
    const auto alone = kernels::make_cpu_backend(1);
    const auto expected = vision::tower::open(model.checkpoint, model.config, *alone)
                              .value()
                              .embed(image.plan, image.patches.view())
                              .value();
    for (const std::uint32_t threads : {2U, 3U, 7U}) {
      const auto shared = kernels::make_cpu_backend(threads, 1);
      auto tower = vision::tower::open(model.checkpoint, model.config, *shared).value();
      BOOST_TEST(same(tower.embed(image.plan, image.patches.view()).value(), expected),
                 width << " x " << height << ", threads " << threads);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_image_has_the_same_bits_after_others) {
  const opened model("tiny-vision");
  const auto backend = kernels::make_cpu_backend();
  auto tower = vision::tower::open(model.checkpoint, model.config, *backend).value();
  const picture first(98, 112, model);
  const picture second(42, 70, model);
  const auto alone = tower.embed(first.plan, first.patches.view()).value();
  const auto other = tower.embed(second.plan, second.patches.view()).value();
  BOOST_TEST(!same(alone, other));
  BOOST_TEST(same(tower.embed(first.plan, first.patches.view()).value(), alone));
  BOOST_TEST(same(tower.embed(second.plan, second.patches.view()).value(), other));
}

BOOST_AUTO_TEST_SUITE_END()
