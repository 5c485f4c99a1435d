// Goal: requests with images get the same bits in any chunks, among other requests, after their KV
// was given to others, and with drafts; what they get depends on the images. Method: the recorded
// image prompts of tiny-vision, alone and inside of long random prompts.
#include <algorithm>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/numeric/runtime/local/mixed_requests.hpp"
#include "tests/support/golden_images.hpp"

using namespace cedar;
using namespace cedar::test;
namespace data = boost::unit_test::data;

namespace {

const std::string folder = CEDAR_TEST_DATA "/golden/tiny-vision";

const small_model& tiny_vision() {
  static const small_model opened(folder);
  return opened;
}

image_prompt recorded(const std::string& name) {
  static const model::model_config config = model::parse_config(folder + "/config.json").value();
  return image_prompt_of(golden_file("tiny-vision/golden/" + name + ".safetensors"), config);
}

session::generation_request request_of(const std::string& name) {
  image_prompt prompt = recorded(name);
  session::generation_request out;
  out.prompt = std::move(prompt.ids);
  out.images = std::move(prompt.images);
  out.new_tokens_max = 5;
  out.ignore_eos = true;
  out.prompt_logits = static_cast<std::uint32_t>(out.prompt.size());
  out.want_logits = true;
  return out;
}

/// Mixed requests; all but the short ones have a recorded prompt at a place of their own.
std::vector<session::generation_request> mixed_with_images() {
  auto out = mixed_requests(3);
  out.resize(8);
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (token_id& id : out[i].prompt) id = 3 + id % 490;
    if (i % 4 == 0) continue;
    image_prompt more = recorded(i % 4 == 1 ? "vl-one-image" : "vl-two-images");
    const std::size_t at = i * 7;
    BOOST_REQUIRE(at + more.ids.size() <= out[i].prompt.size());
    std::ranges::copy(more.ids, out[i].prompt.begin() + static_cast<std::ptrdiff_t>(at));
    for (flow::prompt_image& image : more.images) image.position += static_cast<std::uint32_t>(at);
    out[i].images = std::move(more.images);
  }
  return out;
}

std::vector<answer> each_alone(const std::vector<session::generation_request>& requests) {
  std::vector<answer> out;
  for (const session::generation_request& one : requests)
    out.push_back(tiny_vision()
                      .run({one}, {.rows_per_step = 64, .requests_max = 1, .context_max = context})
                      .front());
  return out;
}

const std::vector<std::string> prompts{"vl-one-image", "vl-two-images"};
const std::vector<session::prefill_mode> modes{session::prefill_mode::exact,
                                               session::prefill_mode::bounded};

}  // namespace

BOOST_AUTO_TEST_SUITE(image_requests)

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_AUTO_TEST_CASE(get_the_same_bits_in_any_chunks) {
  for (const std::string& name : prompts)
    for (const session::prefill_mode mode : modes) {
      session::generation_request request = request_of(name);
      request.mode = mode;
      const auto whole = tiny_vision().run({request}, {.rows_per_step = 64, .requests_max = 1});
      std::uint32_t image_tokens = 0;
      for (const flow::prompt_image& image : request.images) image_tokens += image.rows_count;
      BOOST_TEST(whole.front().used.image_tokens == image_tokens);
      for (std::uint32_t chunk = 1; chunk <= request.images.front().rows_count; ++chunk)
        check_same(tiny_vision().run({request}, {.rows_per_step = chunk, .requests_max = 1}),
                   whole);
    }
}

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_AUTO_TEST_CASE(get_the_bits_that_each_gets_alone) {
  const auto requests = mixed_with_images();
  const std::vector<answer> alone = each_alone(requests);
  const auto together =
      tiny_vision().run(requests, {.rows_per_step = 23, .requests_max = 8, .context_max = context});
  check_same(together, alone);

  // Five granules of 128 positions: whoever grows takes them from younger ones.
  const auto scarce = tiny_vision().run(requests, {.rows_per_step = 23,
                                                   .requests_max = 8,
                                                   .context_max = context,
                                                   .kv_positions = std::uint64_t{5} * 128});
  check_same(scarce, alone);
  std::uint32_t preempted = 0;
  for (std::size_t i = 0; i < scarce.size(); ++i)
    if (!requests[i].images.empty()) preempted += scarce[i].used.preemptions;
  BOOST_TEST(preempted > 0U);
}

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_AUTO_TEST_CASE(get_the_same_bits_with_drafts) {
  const auto requests = mixed_with_images();
  const auto drafted = tiny_vision().run(
      requests,
      {.rows_per_step = 40, .requests_max = 8, .context_max = context, .draft_tokens = 3});
  check_same(drafted, each_alone(requests));
  std::uint32_t proposed = 0;
  for (const answer& one : drafted) proposed += one.used.drafted_tokens;
  BOOST_TEST(proposed > 0U);
}

BOOST_AUTO_TEST_CASE(depend_on_their_images) {
  const session::generation_request request = request_of("vl-two-images");
  session::generation_request other = request;
  std::swap(other.images[0].pixels, other.images[1].pixels);  // 42 x 70 and 70 x 42 pixels
  const auto expected = tiny_vision().run({request}, {.rows_per_step = 64, .requests_max = 1});
  const auto got = tiny_vision().run({other}, {.rows_per_step = 64, .requests_max = 1});
  const auto row = [&](const std::vector<answer>& of, std::size_t position) {
    const std::size_t width = of.front().logits.size() / of.front().positions.size();
    return std::vector<float>(
        of.front().logits.begin() + static_cast<std::ptrdiff_t>(position * width),
        of.front().logits.begin() + static_cast<std::ptrdiff_t>((position + 1) * width));
  };
  const std::size_t first = request.images.front().position;
  BOOST_TEST((row(got, first) == row(expected, first)));  // the span's delimiter
  BOOST_TEST((row(got, first + 1) != row(expected, first + 1)));
}

BOOST_AUTO_TEST_SUITE_END()
