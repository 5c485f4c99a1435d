// Goal: images of a chat become spans of its prompt, by their headers alone; what cannot be taken
// is refused with the member's path. Method: files of tests/data/image and spoilt ones, the rules
// and the tokenizer of tiny-vision.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "runtime/http/order.hpp"
#include "runtime/session/prompt_images.hpp"
#include "tests/support/image_urls.hpp"

using namespace cedar;
using namespace cedar::http;
using namespace cedar::test;

namespace {

constexpr token_id image_token = 504;
const image::image_rules rules{.tokens_max = 64, .pixels_min = 784};
const std::string first_path = "messages[0].content[0].image_url.url";

const text::tokenizer& vocabulary() {
  static const auto loaded =
      text::tokenizer::load(CEDAR_TEST_DATA "/golden/tiny-vision/tokenizer.json");
  return *loaded;
}

api_result<generation_order> order_of(const std::vector<nlohmann::ordered_json>& messages,
                                      bool with_tower = true) {
  static const served_model model{"m", "f", 1, {}};
  session::service_limits limits{1000, 512};
  if (with_tower) {
    limits.image_token = image_token;
    limits.images = rules;
  }
  const nlohmann::ordered_json body{{"model", "m"}, {"n", 2}, {"messages", messages}};
  const auto ask = parse_chat(body.dump());
  BOOST_REQUIRE_MESSAGE(ask, (ask ? "" : ask.error().message));
  return order_maker(model, vocabulary(), limits).make(*ask);
}

void check_refused(const std::vector<std::string>& urls, const std::string& path,
                   const std::string& text, bool with_tower = true) {
  const auto order = order_of({message_with_images(urls, "a")}, with_tower);
  BOOST_REQUIRE(!order);
  BOOST_TEST(order.error().status == 400U);
  BOOST_TEST(order.error().param == path);
  BOOST_TEST(order.error().message.find(path + ": ") == 0U, order.error().message);
  BOOST_TEST(order.error().message.find(text) != std::string::npos, order.error().message);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(order_images)

BOOST_AUTO_TEST_CASE(become_spans_of_the_prompt) {
  const std::vector<std::string> names{"rgb.png", "baseline.jpg", "lossy.webp"};
  auto order = order_of({message_with_images({data_url(image_bytes(names[0]))}, "a"),
                         {{"role", "assistant"}, {"content", "b"}},
                         message_with_images({data_url(image_bytes(names[1]), "image/jpeg"),
                                              data_url(image_bytes(names[2]), "image/webp")},
                                             "c")});
  BOOST_REQUIRE_MESSAGE(order, (order ? "" : order.error().message));
  BOOST_REQUIRE_EQUAL(order->images.size(), 3U);
  BOOST_TEST(order->images[2].path == "messages[2].content[1].image_url.url");
  BOOST_REQUIRE_EQUAL(order->requests.size(), 2U);
  BOOST_REQUIRE(decode_images(*order, rules));
  BOOST_TEST(order->images.empty());

  const auto expected = *vocabulary().encode(
      "<｜begin▁of▁sentence｜><｜User｜><｜deepseek_image｜>\n\na<｜Assistant｜></think>b"
      "<｜end▁of▁sentence｜><｜User｜><｜deepseek_image｜>\n\n<｜deepseek_image｜>\n\nc<"
      "｜Assistant｜>"
      "</think>",
      text::control_strings::tokens);
  for (const session::generation_request& request : order->requests) {
    const auto whole = session::check_images(request.prompt, request.images, image_token, rules);
    BOOST_TEST(whole.has_value(), (whole ? "" : whole.error().message));
    std::vector<token_id> collapsed = request.prompt;
    for (std::size_t i = 3; i-- > 0;) {
      const flow::prompt_image& image = request.images.at(i);
      const auto begin = collapsed.begin() + image.position;
      collapsed.erase(begin + 1, begin + image.rows_count);
      const auto file = image_bytes(names[i]);
      const auto prepared = image::prepare(std::as_bytes(std::span(file)), rules).value();
      BOOST_TEST((image.digest == session::prompt_image_of(prepared).digest));
    }
    BOOST_TEST(collapsed == expected, boost::test_tools::per_element());
  }
  BOOST_TEST(order->prompt_tokens == order->requests.front().prompt.size());
}

BOOST_AUTO_TEST_CASE(are_refused_by_their_path) {
  const std::string good = data_url(image_bytes("rgb.png"));
  const std::string second = "messages[0].content[1].image_url.url";
  check_refused({"https://example.com/a.png"}, first_path, "fetches nothing");
  check_refused({good, "data:image/png;base64,!"}, second, "not base64 at byte 0");
  check_refused({good, data_url("")}, second, "no bytes");
  check_refused({data_url("hello")}, first_path, "PNG");
  check_refused({data_url(image_bytes("other.gif"))}, first_path, "PNG");
  check_refused({data_url(image_bytes("animation.webp"), "image/webp")}, first_path, "nimat");
  check_refused({data_url(png_header(0, 5))}, first_path, "");
  check_refused({data_url(png_header(100000, 100000))}, first_path, "100000 x 100000");
  check_refused({data_url(image_bytes("line.png"))}, first_path, "too narrow");
  check_refused(std::vector<std::string>(17, good), "messages[0].content[16].image_url.url",
                "at most 16");
  check_refused({good}, first_path, "reads no images", false);
}

// Each would be taken alone.
BOOST_AUTO_TEST_CASE(share_a_bound_of_pixels) {
  const std::string large = data_url(png_header(8000, 6000));
  BOOST_TEST(order_of({message_with_images({large}, "a")}).has_value());
  check_refused({large, large}, "messages[0].content[1].image_url.url", "8000 x 6000");
}

BOOST_AUTO_TEST_CASE(are_refused_when_they_are_damaged_behind_their_header) {
  std::string cut = image_bytes("rgb.png");
  cut.resize(cut.size() - 20);
  auto order = order_of({message_with_images({data_url(cut)}, "a")});
  BOOST_REQUIRE(order);
  const auto decoded = decode_images(*order, rules);
  BOOST_REQUIRE(!decoded);
  BOOST_TEST(decoded.error().status == 400U);
  BOOST_TEST(decoded.error().param == first_path);
}

BOOST_AUTO_TEST_CASE(have_no_other_way_into_a_prompt) {
  const served_model model{"m", "f", 1, {}};
  session::service_limits limits{1000, 512};
  limits.image_token = image_token;
  limits.images = rules;
  completion_ask ask;
  ask.model = "m";
  ask.prompts.emplace_back(std::vector<token_id>{20, image_token});
  const auto order = order_maker(model, vocabulary(), limits).make(ask);
  BOOST_REQUIRE(!order);
  BOOST_TEST(order.error().status == 400U);
  BOOST_TEST(order.error().param == "prompt");
  BOOST_TEST(order.error().message.find("token 504 stands for an image") != std::string::npos);
  // As text it is text.
  ask.prompts = {std::string("<｜deepseek_image｜>")};
  const auto text = order_maker(model, vocabulary(), limits).make(ask);
  BOOST_REQUIRE(text);
  BOOST_TEST(std::ranges::count(text->requests.front().prompt, image_token) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
