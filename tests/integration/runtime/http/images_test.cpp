// Goal: a chat's images reach the model, and every bad one is the client's error, by the member's
// name, that leaves nothing behind. Method: tiny-vision behind a server; answers against the engine
// itself; spoilt images of every kind.
#include <boost/test/unit_test.hpp>

#include "tests/integration/runtime/http/image_world.hpp"

using namespace cedar;
using namespace cedar::test;
using json = nlohmann::ordered_json;

BOOST_AUTO_TEST_SUITE(http_images)

BOOST_AUTO_TEST_CASE(are_read_and_counted) {
  const image_world one;
  const std::string png = data_url(image_bytes("rgb.png"));
  const std::string jpeg = data_url(image_bytes("baseline.jpg"), "image/jpeg");
  const auto text_of = [&](const json& body) {
    const http_reply reply = one.ask(body);
    BOOST_REQUIRE_MESSAGE(reply.status == 200, reply.body);
    const json answer = json::parse(reply.body);
    BOOST_TEST(answer["usage"]["completion_tokens"] == 8);
    return std::pair(answer["choices"][0]["message"]["content"].get<std::string>(),
                     answer["usage"]["prompt_tokens"].get<int>());
  };
  const json with_png = chat({message_with_images({png}, "What is it?")});
  const json with_both = chat({message_with_images({png, jpeg}, "What is it?")});
  const auto [answer, tokens] = text_of(with_png);
  BOOST_TEST(answer == one.expected(with_png));
  const auto [other, more] = text_of(with_both);
  BOOST_TEST(other == one.expected(with_both));
  BOOST_TEST(other != answer);
  // 23 x 17 is enlarged to 32 x 24, 3 x 2 patches and one cell: start, cell, newline, end.
  const auto plain = text_of(chat({{{"role", "user"}, {"content", "\n\nWhat is it?"}}}));
  BOOST_TEST(tokens == plain.second + 4);
  BOOST_TEST(more > tokens + 4);
}

BOOST_AUTO_TEST_CASE(are_refused_by_name_and_leave_nothing) {
  const image_world one;
  std::string truncated = image_bytes("rgb.png");
  truncated.resize(truncated.size() - 20);
  const std::vector<std::string> urls{
      data_url(truncated),
      data_url(image_bytes("rgb.png").substr(0, 20)),
      data_url(png_header(60000, 60000)),
      data_url(png_header(0, 0)),
      data_url(image_bytes("other.gif")),
      data_url(image_bytes("line.png")),
      data_url(""),
      "data:image/png;base64,%%%%",
      "data:text/plain;base64,aGVsbG8=",
      "https://example.com/a.png",
      "file:///etc/passwd",
  };
  for (const std::string& url : urls) {
    BOOST_TEST_CONTEXT(url.substr(0, 60)) {
      const http_reply reply = one.ask(chat({message_with_images({url}, "a")}));
      BOOST_TEST(reply.status == 400);
      BOOST_TEST(json::parse(reply.body)["error"]["param"] ==
                 "messages[0].content[0].image_url.url");
    }
  }
  json system = message_with_images({data_url(image_bytes("rgb.png"))}, "a");
  system["role"] = "system";
  const std::pair<int, json> cases[] = {
      {400, chat({system})},
      {400, chat({message_with_images(std::vector<std::string>(17, urls[3]), "a")})},
      {413, chat({message_with_images({data_url(std::string(90'000, 'x'))}, "a")})},
  };
  for (const auto& [status, body] : cases) BOOST_TEST(one.ask(body).status == status);
  const http_reply ids = exchange(one.port, "POST", "/v1/completions",
                                  R"({"model": "m", "prompt": [5, 504, 504], "max_tokens": 1})");
  BOOST_TEST(ids.status == 400);
  BOOST_TEST(json::parse(ids.body)["error"]["param"] == "prompt");
  BOOST_TEST(metric(one.port, "cedar_answers_open") == 0);
  BOOST_TEST(metric(one.port, "cedar_tokens_open") == 0);
  BOOST_TEST((one.service->status().load == session::scheduler_load{}));
}

BOOST_AUTO_TEST_CASE(need_a_model_that_reads_them) {
  world text;
  const http_reply reply =
      exchange(text.port, "POST", "/v1/chat/completions",
               chat({message_with_images({data_url(image_bytes("rgb.png"))}, "a")}).dump());
  BOOST_TEST(reply.status == 400);
  BOOST_TEST(json::parse(reply.body)["error"]["param"] == "messages[0].content[0].image_url.url");
  BOOST_TEST(contains(reply.body, "reads no images"), reply.body);
}

BOOST_AUTO_TEST_SUITE_END()
