#include "tests/integration/runtime/http/world.hpp"

#include <boost/test/unit_test.hpp>
#include <thread>

#include "kernels/registry/registry.hpp"
#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"

namespace cedar::test {

using nlohmann::json;

namespace {

const stage::model_source& model() {
  static const auto opened = stage::model_source::open(checkpoint_of("cedar-tiny"));
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
  return **opened;
}

std::unique_ptr<local::local_engine> engine_of(std::uint32_t requests_max,
                                               std::uint64_t kv_positions) {
  static const auto backend = kernels::make_backend("cpu");
  BOOST_REQUIRE(backend);
  auto opened = local::local_engine::open(
      model(), *backend,
      {.rows_per_step = 16, .requests_max = requests_max, .kv_positions = kv_positions});
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
  return std::move(*opened);
}

std::string text_of(const http_reply& reply) {
  BOOST_REQUIRE_EQUAL(reply.status, 200);
  return json::parse(reply.body).at("choices").at(0).at("text");
}

const json question = ask_for("A small bear", 12);

}  // namespace

const text::tokenizer& vocabulary() {
  static const auto loaded = text::tokenizer::load(checkpoint_of("cedar-tiny") / "tokenizer.json");
  BOOST_REQUIRE(loaded);
  return *loaded;
}

http::server_options server_options_of_tests() {
  http::server_options out;
  out.port = 0;
  out.model.name = "m";
  return out;
}

std::uint16_t port_of(const http::server& server) {
  const std::string address = server.address();
  return static_cast<std::uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
}

double metric(std::uint16_t port, const std::string& name) {
  const std::string text = exchange(port, "GET", "/metrics").body;
  const std::size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? 0 : std::stod(text.substr(at + name.size() + 2));
}

bool eventually(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

json ask_for(const std::string& prompt, std::uint32_t max_tokens, bool stream) {
  return {{"model", "m"},     {"prompt", prompt},   {"max_tokens", max_tokens},
          {"temperature", 0}, {"ignore_eos", true}, {"stream", stream}};
}

world::world(http::server_options options, std::uint32_t requests_max, std::uint64_t kv_positions)
    : engine_(engine_of(requests_max, kv_positions)),
      local_(std::make_unique<local::local_service>(*engine_, 8)),
      service(std::make_unique<watched_service>(*local_)) {
  auto opened = http::server::open(*service, vocabulary(), options);
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
  server = std::move(*opened);
  port = port_of(*server);
  first_ = text_of(post(question));
}

std::unique_ptr<http_client> world::begin(const json& body) const {
  auto out = std::make_unique<http_client>(port);
  out->send("POST", "/v1/completions", body.dump());
  return out;
}

void world::check_whole() {
  BOOST_REQUIRE(eventually([&] {
    return local_->status().load == session::scheduler_load{} &&
           metric(port, "cedar_answers_open") == 0;
  }));
  BOOST_TEST(metric(port, "cedar_tokens_open") == 0);
  BOOST_TEST(text_of(post(question)) == first_);
}

}  // namespace cedar::test
