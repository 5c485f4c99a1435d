// Goal: images of a request are those that its prompt has places for, and whoever embeds them gets
// each with its first row, if there is room for it. Method: a 2 x 2-patch picture in small prompts
// by hand.
#include "runtime/session/prompt_images.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "runtime/session/step_scheduler.hpp"

using namespace cedar;
using namespace cedar::session;

namespace {

constexpr token_id image_token = 9;
const image::image_rules rules{.patch = 2, .downsample = 2, .tokens_max = 20};

/// A picture of `rows` x `columns` patches, all of its values `value`.
flow::prompt_image picture(std::uint32_t rows = 2, std::uint32_t columns = 2,
                           std::uint8_t value = 7) {
  image::prepared_image prepared{image::plan_image(columns * 2, rows * 2, rules),
                                 {columns * 2, rows * 2}};
  std::ranges::fill(prepared.pixels.pixels, value);
  return prompt_image_of(prepared);
}

flow::prompt_image placed(std::uint32_t position, flow::prompt_image image = picture()) {
  image.position = position;
  return image;
}

/// Text ids but at the places of images.
std::vector<token_id> ids_with(std::size_t count, std::initializer_list<std::uint32_t> images,
                               std::uint32_t rows = 4) {
  std::vector<token_id> out(count, 5);
  for (const std::uint32_t position : images)
    for (std::uint32_t i = 0; i < rows && position + i < count; ++i)
      out[position + i] = image_token;
  return out;
}

void check_refused(const std::vector<token_id>& prompt,
                   const std::vector<flow::prompt_image>& images, const std::string& text,
                   std::optional<image::image_rules> how = rules) {
  const auto judged = check_images(prompt, images, image_token, how);
  BOOST_REQUIRE(!judged);
  BOOST_TEST((judged.error().code == errc::invalid_argument));
  BOOST_TEST(judged.error().message.find(text) != std::string::npos, judged.error().message);
}

scheduler_limits limits_of() {
  return {.rows_per_step = 3,
          .requests_max = 2,
          .queue_max = 3,
          .context_max = 30,
          .steps_in_flight = 2,
          .vocabulary = 50,
          .lookback = 3,
          .image_token = image_token,
          .window = 3,
          .images = rules};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(prompt_images)

BOOST_AUTO_TEST_CASE(take_their_places_in_a_prompt) {
  BOOST_TEST(picture().rows_count == 4U);  // start, one cell, newline, end
  BOOST_TEST(
      check_images(ids_with(4, {0}), std::vector{placed(0)}, image_token, rules).has_value());
  BOOST_TEST(
      check_images(ids_with(12, {1, 5}), std::vector{placed(1), placed(5)}, image_token, rules)
          .has_value());
  BOOST_TEST(check_images(ids_with(5, {}), {}, image_token, rules).has_value());
  // Without images the id is one like others.
  BOOST_TEST(check_images(ids_with(8, {2}), {}, -1, std::nullopt).has_value());
}

BOOST_AUTO_TEST_CASE(are_refused_elsewhere) {
  const std::string stray = "token 9 stands for an image, of which there is none";
  check_refused(ids_with(8, {2}), {}, stray);
  check_refused(ids_with(12, {1, 6}), {placed(1)}, stray);
  check_refused(ids_with(12, {1, 6}), {placed(6)}, stray);
  check_refused(ids_with(12, {6}), {placed(6), placed(1)}, "image 2 is not behind");
  check_refused(ids_with(12, {1, 4}), {placed(1), placed(4)}, "image 2 is not behind");
  check_refused(ids_with(5, {2}), {placed(2)}, "the prompt ends inside image 1");
  check_refused(ids_with(5, {2}), {placed(0xffffffff)}, "the prompt ends inside image 1");
  check_refused(ids_with(8, {2}), {placed(3)}, stray);
  check_refused(ids_with(8, {3}), {placed(2)}, "image 1 has positions without");
  check_refused(ids_with(8, {2}), {placed(2)}, "nobody here reads", std::nullopt);
}

BOOST_AUTO_TEST_CASE(are_as_the_rules_plan_them) {
  const auto spoilt = [](auto spoil) {
    flow::prompt_image image = placed(2);
    spoil(image);
    return image;
  };
  const auto prompt = ids_with(8, {2});
  for (const flow::prompt_image& wrong : {
           spoilt([](flow::prompt_image& image) { image.rows_count = 5; }),
           spoilt([](flow::prompt_image& image) { image.patch_rows = 0; }),
           spoilt([](flow::prompt_image& image) { image.patch_columns = 0xffffffff; }),
           spoilt([](flow::prompt_image& image) { image.patch_columns = 30; }),
       })
    check_refused(prompt, {wrong}, "image 1: ");
  check_refused(prompt, {spoilt([](flow::prompt_image& image) { image.pixels = {}; })},
                "image 1: its pixels are not 4 x 4");
}

BOOST_AUTO_TEST_CASE(replace_their_placeholders) {
  std::vector<token_id> tokens{5, image_token, 6, image_token};
  const auto positions = place_images(tokens, image_token, std::vector<std::uint32_t>{2, 3});
  BOOST_REQUIRE(positions);
  BOOST_TEST((*positions == std::vector<std::uint32_t>{1, 4}));
  BOOST_TEST((tokens == std::vector<token_id>{5, 9, 9, 6, 9, 9, 9}));
  std::vector<token_id> one{5, image_token};
  BOOST_TEST(!place_images(one, image_token, std::vector<std::uint32_t>{2, 3}));
  BOOST_TEST(!place_images(one, image_token, {}));
  BOOST_TEST((one == std::vector<token_id>{5, image_token}));
}

BOOST_AUTO_TEST_CASE(are_known_by_grid_and_pixels) {
  BOOST_TEST((picture().digest == picture().digest));
  BOOST_TEST((picture(2, 2, 7).digest != picture(2, 2, 8).digest));
  BOOST_TEST((picture(1, 4).digest != picture(4, 1).digest));
}

BOOST_AUTO_TEST_CASE(need_the_image_token) {
  step_scheduler core(limits_of());
  generation_request ask;
  ask.prompt = ids_with(8, {2});
  ask.images = {placed(2)};
  generation_request stray = ask;
  stray.images.clear();
  BOOST_TEST(!core.submit({ask, stray}));
  generation_request forced = ask;
  forced.forced = {image_token};
  BOOST_TEST(!core.submit({forced}));
}

/// Two pictures at 2 and 7, in steps of three rows.
generation_request with_two_images() {
  generation_request ask;
  ask.prompt = ids_with(12, {2, 7});
  ask.images = {placed(2), placed(7, picture(2, 2, 8))};
  ask.new_tokens_max = 1;
  return ask;
}

std::vector<std::uint32_t> beginning(const step_scheduler& core) {
  std::vector<std::uint32_t> out;
  for (const flow::request_image& one : core.beginning_images()) out.push_back(one.image.position);
  return out;
}

BOOST_AUTO_TEST_CASE(come_with_their_first_rows) {
  scheduler_limits limits = limits_of();
  limits.steps_in_flight = 8;
  step_scheduler core(limits);
  const auto ids = core.submit({with_two_images()});
  BOOST_REQUIRE(ids);
  using positions = std::vector<std::uint32_t>;
  for (const positions& expected : {positions{2}, positions{}, positions{7}, positions{}}) {
    BOOST_REQUIRE(core.next_step());
    BOOST_TEST(beginning(core) == expected, boost::test_tools::per_element());
    for (const flow::request_image& one : core.beginning_images())
      BOOST_TEST((one.request == ids->front()));
  }
  BOOST_TEST(core.usage_of(ids->front())->image_tokens == 8U);
  // What the pipeline has lost comes again.
  BOOST_TEST(core.fail_active().size() == 1U);
  core.begin_epoch(epoch_id{1});
  BOOST_REQUIRE(core.submit({with_two_images()}));
  BOOST_REQUIRE(core.next_step());
  BOOST_TEST(beginning(core) == positions{2}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(without_room_keep_their_request_waiting_and_no_other) {
  scheduler_limits limits = limits_of();
  limits.rows_per_step = 20;
  limits.steps_in_flight = 8;
  step_scheduler core(limits);
  generation_request text;
  text.prompt = ids_with(5, {});
  const auto ids = core.submit({with_two_images(), text});
  BOOST_REQUIRE(ids);
  const auto first = core.next_step(false);
  BOOST_REQUIRE(first);
  BOOST_REQUIRE_EQUAL(first->spans.size(), 2U);
  BOOST_TEST(first->spans[0].rows_count == 2U);
  BOOST_TEST(first->spans[1].rows_count == 5U);
  BOOST_TEST(core.beginning_images().empty());
  BOOST_TEST(!core.next_step(false));
  const auto second = core.next_step();
  BOOST_REQUIRE(second);
  BOOST_TEST(second->spans.at(0).rows_count == 10U);
  BOOST_TEST(core.beginning_images().size() == 2U);
  BOOST_TEST(!core.next_step());
}

BOOST_AUTO_TEST_SUITE_END()
