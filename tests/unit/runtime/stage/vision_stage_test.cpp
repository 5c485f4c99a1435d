// Goal: rows of images are found by request and position, wherever steps cut the spans, and are
// kept no longer than needed. Method: the recorded images of tiny-vision, the tower's own rows.
#include "runtime/stage/vision_stage.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/cpu/cpu_backend.hpp"
#include "runtime/image/patches.hpp"
#include "runtime/stage/model_source.hpp"
#include "tests/support/golden_images.hpp"

using namespace cedar;
using namespace cedar::test;
using kernels::bf16;
using kernels::matrix_buffer;

namespace {

const stage::model_source& source() {
  static const auto opened =
      stage::model_source::open(std::string(CEDAR_TEST_DATA) + "/golden/tiny-vision").value();
  return *opened;
}

const image_prompt& prompt() {
  static const image_prompt read = image_prompt_of(
      golden_file("tiny-vision/golden/vl-two-images.safetensors"), source().config());
  return read;
}

struct vision_run {
  std::unique_ptr<kernels::backend> backend = kernels::make_cpu_backend();
  std::unique_ptr<stage::vision_stage> stage = source().make_vision(*backend).value();

  void add(std::uint64_t request) {
    for (const flow::prompt_image& image : prompt().images)
      BOOST_REQUIRE(stage->add({request_id{request}, image}));
  }
  static flow::step_table step(const std::vector<flow::row_span>& spans) {
    flow::step_table table;
    table.step = step_id{3};
    table.spans = spans;
    for (const flow::row_span& span : spans)
      for (std::uint32_t i = 0; i < span.rows_count; ++i)
        table.tokens.push_back(prompt().ids.at(span.first_position + i));
    return table;
  }
  std::vector<bf16> rows(const std::vector<flow::row_span>& spans) const {
    const auto made = stage->run(step(spans));
    BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
    return {made->span().begin(), made->span().end()};
  }
};

/// The tower's rows of all images, one after another.
std::vector<bf16> expected_rows() {
  const auto backend = kernels::make_cpu_backend();
  const auto& config = source().config();
  auto tower = vision::tower::open(source().checkpoint(), config, *backend).value();
  const golden_file file("tiny-vision/golden/vl-two-images.safetensors");
  std::vector<bf16> out;
  for (std::size_t i = 0; i < prompt().images.size(); ++i) {
    const flow::prompt_image& image = prompt().images[i];
    const auto plan = image::plan_of_patches(image.patch_rows, image.patch_columns,
                                             vision::rules_of(config.vision));
    const auto rows =
        tower.embed(*plan, file.matrix<bf16>("image" + std::to_string(i) + ".patches")).value();
    out.insert(out.end(), rows.span().begin(), rows.span().end());
  }
  return out;
}

flow::verdict verdict_of(std::uint64_t request, std::uint32_t committed, bool finished = false) {
  return {step_id{3}, {}, {{request_id{request}, committed, finished}}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(vision_stage)

BOOST_AUTO_TEST_CASE(has_the_rows_of_every_cut) {
  vision_run run;
  run.add(1);
  run.add(2);
  const std::vector<bf16> expected = expected_rows();
  const auto length = static_cast<std::uint32_t>(prompt().ids.size());
  BOOST_TEST((run.rows({{request_id{1}, 0, length}}) == expected));
  for (std::uint32_t cut = 1; cut < length; ++cut) {
    std::vector<bf16> both = run.rows({{request_id{1}, 0, cut}});
    const std::vector<bf16> rest = run.rows({{request_id{1}, cut, length - cut}});
    both.insert(both.end(), rest.begin(), rest.end());
    BOOST_TEST((both == expected), "cut at " << cut);
  }
  std::vector<bf16> twice = expected;
  twice.insert(twice.end(), expected.begin(), expected.end());
  BOOST_TEST((run.rows({{request_id{2}, 0, length}, {request_id{1}, 0, length}}) == twice));
}

BOOST_AUTO_TEST_CASE(keeps_rows_until_they_are_committed_or_the_request_ends) {
  vision_run run;
  run.add(1);
  run.add(2);
  const auto& images = prompt().images;
  const std::size_t all = images[0].rows_count + images[1].rows_count;
  BOOST_TEST(run.stage->rows_held() == 2 * all);
  run.stage->apply(verdict_of(1, images[0].end() - 1));
  BOOST_TEST(run.stage->rows_held() == 2 * all);
  run.stage->apply(verdict_of(1, images[0].end()));
  BOOST_TEST(run.stage->rows_held() == 2 * all - images[0].rows_count);
  run.stage->apply(verdict_of(2, 1, true));
  BOOST_TEST(run.stage->rows_held() == images[1].rows_count);
  run.stage->apply(verdict_of(7, 1, true));
  run.stage->clear();
  BOOST_TEST(run.stage->rows_held() == 0U);
  run.add(1);
}

BOOST_AUTO_TEST_CASE(names_a_row_that_it_does_not_have) {
  vision_run run;
  const auto& images = prompt().images;
  const std::vector<flow::row_span> second{{request_id{1}, images[1].position, 1}};
  const auto refused = [&] {
    const auto made = run.stage->run(vision_run::step(second));
    BOOST_REQUIRE(!made);
    BOOST_TEST((made.error().code == errc::mismatch));
    BOOST_TEST(made.error().message.find("request 1, position " +
                                         std::to_string(images[1].position)) != std::string::npos);
  };
  refused();
  BOOST_REQUIRE(run.stage->add({request_id{1}, images[0]}));
  refused();
  BOOST_REQUIRE(run.stage->add({request_id{1}, images[1]}));
  BOOST_TEST(run.stage->run(vision_run::step(second)).has_value());
}

BOOST_AUTO_TEST_CASE(refuses_images_that_do_not_fit) {
  vision_run run;
  const auto refused = [&](auto spoil) {
    flow::request_image added{request_id{1}, prompt().images[0]};
    spoil(added.image);
    const auto taken = run.stage->add(added);
    BOOST_REQUIRE(!taken);
    BOOST_TEST((taken.error().code == errc::invalid_argument));
    BOOST_TEST(run.stage->rows_held() == 0U);
  };
  refused([](flow::prompt_image& image) { image.patch_rows = 0; });
  refused([](flow::prompt_image& image) { image.patch_rows = 0xffffffff; });
  refused([](flow::prompt_image& image) { image.rows_count -= 1; });
  refused([](flow::prompt_image& image) { image.pixels = {}; });
  run.add(1);
  const auto again = run.stage->add({request_id{1}, prompt().images[0]});
  BOOST_REQUIRE(!again);
  BOOST_TEST(again.error().message.find("there is one already") != std::string::npos);
  BOOST_TEST(
      (run.stage->rows_held() == prompt().images[0].rows_count + prompt().images[1].rows_count));
}

BOOST_AUTO_TEST_CASE(needs_a_tower) {
  const auto text = stage::model_source::open(std::string(CEDAR_TEST_DATA) + "/golden/tiny-12");
  const auto backend = kernels::make_cpu_backend();
  const auto made = (*text)->make_vision(*backend);
  BOOST_REQUIRE(!made);
  BOOST_TEST(made.error().message.find("no vision tower") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
