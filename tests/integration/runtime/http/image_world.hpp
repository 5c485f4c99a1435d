// tiny-vision behind a server, for tests of images.
#pragma once

#include "kernels/registry/registry.hpp"
#include "tests/integration/runtime/http/world.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/support/image_urls.hpp"

namespace cedar::test {

inline nlohmann::ordered_json chat(const std::vector<nlohmann::ordered_json>& messages) {
  return {{"model", "m"},
          {"messages", messages},
          {"max_tokens", 8},
          {"temperature", 0},
          {"ignore_eos", true}};
}

/// Steps of five rows cut most spans.
struct image_world {
  explicit image_world(http::server_options chosen = small()) : options(std::move(chosen)) {}

  /// Bodies of 100,000 bytes at most.
  static http::server_options small() {
    http::server_options out = server_options_of_tests();
    out.body_bytes_max = 100'000;
    return out;
  }
  /// Fetches images from a host, for so long.
  static http::server_options fetching(
      const std::string& host, std::chrono::milliseconds limit = std::chrono::milliseconds(500)) {
    http::server_options out = small();
    out.image_hosts = {host};
    out.download_limit = limit;
    return out;
  }

  std::filesystem::path folder = CEDAR_TEST_DATA "/golden/tiny-vision";
  http::server_options options;
  std::unique_ptr<kernels::backend> backend = kernels::make_backend("cpu");
  std::unique_ptr<stage::model_source> source = stage::model_source::open(folder).value();
  text::tokenizer vocabulary = text::tokenizer::load(folder / "tokenizer.json").value();
  std::unique_ptr<local::local_engine> engine = opened();
  std::unique_ptr<local::local_service> service =
      std::make_unique<local::local_service>(*engine, 8);
  std::unique_ptr<http::server> server = http::server::open(*service, vocabulary, options).value();
  std::uint16_t port = port_of(*server);

  std::unique_ptr<local::local_engine> opened() const {
    return local::local_engine::open(*source, *backend,
                                     {.rows_per_step = 5, .requests_max = 2, .context_max = 256})
        .value();
  }
  http_reply ask(const nlohmann::ordered_json& body) const {
    return exchange(port, "POST", "/v1/chat/completions", body.dump());
  }
  /// What the engine itself gives for the same chat, as text.
  std::string expected(const nlohmann::ordered_json& body) const {
    const http::served_model model = server_options_of_tests().model;
    const auto limits = service->limits();
    auto order =
        http::order_maker(model, vocabulary, limits).make(http::parse_chat(body.dump()).value());
    BOOST_REQUIRE(order);
    BOOST_REQUIRE(http::decode_images(*order, *limits.images));
    http::answer made(vocabulary, {.chat = order->chat});
    std::string text;
    const auto ran =
        opened()->generate(order->requests, {[&](std::size_t, const auto& row) {
                                               if (!row.in_prompt)
                                                 text += made.push({row.token, 0}).text;
                                             },
                                             {}});
    BOOST_REQUIRE(ran);
    return text + made.finish().text;
  }
};

}  // namespace cedar::test
