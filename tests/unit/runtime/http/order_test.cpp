// Goal: an order never asks the pipeline for more positions than it has, and a refusal says how
// many those are. Method: prompts and lengths around the limits of context and KV.
#include "runtime/http/order.hpp"

#include <boost/test/unit_test.hpp>

#include "runtime/http/chat_request.hpp"

using namespace cedar;
using namespace cedar::http;

namespace {

const text::tokenizer& vocabulary() {
  static const auto loaded =
      text::tokenizer::load(CEDAR_SOURCE_DIR "/configs/models/cedar-tiny/tokenizer.json");
  return *loaded;
}

/// A context of 1000 positions, KV of `kv_positions`.
api_result<generation_order> order_of(std::size_t prompt_tokens,
                                      std::optional<std::uint32_t> new_tokens,
                                      std::uint64_t kv_positions) {
  static const served_model model{"m", "f", 1, {}};
  const session::service_limits limits{1000, 2048, kv_positions};
  completion_ask ask;
  ask.model = "m";
  ask.prompts.emplace_back(std::vector<token_id>(prompt_tokens, 20));
  ask.new_tokens_max = new_tokens;
  return order_maker(model, vocabulary(), limits).make(ask);
}

std::uint32_t new_tokens_of(std::size_t prompt_tokens, std::optional<std::uint32_t> new_tokens,
                            std::uint64_t kv_positions) {
  const auto order = order_of(prompt_tokens, new_tokens, kv_positions);
  BOOST_REQUIRE_MESSAGE(order, (order ? "" : order.error().message));
  return order->requests.at(0).new_tokens_max;
}

void check_refused(std::size_t prompt_tokens, std::optional<std::uint32_t> new_tokens,
                   std::uint64_t kv_positions, const std::string& param, const std::string& text) {
  const auto order = order_of(prompt_tokens, new_tokens, kv_positions);
  BOOST_REQUIRE(!order);
  BOOST_TEST(order.error().status == 400U);
  BOOST_TEST(order.error().param == param);
  BOOST_TEST(order.error().code == "context_length_exceeded");
  BOOST_TEST(order.error().message == text);
}

/// Of a completion that says nothing about its length.
std::uint32_t default_of(std::size_t prompt_tokens) {
  static const served_model model{"m", "f", 1, {}};
  const session::service_limits limits{1000, 2048};
  auto ask = parse_completion(R"({"model": "m", "prompt": "x"})");
  BOOST_REQUIRE(ask);
  ask->prompts = {std::vector<token_id>(prompt_tokens, 20)};
  return order_maker(model, vocabulary(), limits).make(*ask).value().requests.at(0).new_tokens_max;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(order)

BOOST_AUTO_TEST_CASE(fits_the_context) {
  BOOST_TEST(new_tokens_of(10, 5, 0) == 5U);
  BOOST_TEST(new_tokens_of(10, 991, 0) == 991U);
  check_refused(10, 992, 0, "max_tokens",
                "a prompt of 10 tokens and an answer of 992 take 1001 positions, the context holds "
                "1000; ask for at most 991 tokens");
  BOOST_TEST(new_tokens_of(10, std::nullopt, 0) == 991U);
  BOOST_TEST(new_tokens_of(1000, 1, 0) == 1U);
  check_refused(1001, 5, 0, "prompt",
                "the prompt has 1001 tokens, the context holds 1000; shorten it");
}

BOOST_AUTO_TEST_CASE(fits_the_kv) {
  // The last token of an answer takes no position.
  BOOST_TEST(new_tokens_of(100, 157, 256) == 157U);
  check_refused(100, 158, 256, "max_tokens",
                "a prompt of 100 tokens and an answer of 158 take 257 positions, the KV of this "
                "server holds 256; ask for at most 157 tokens");
  // Nobody asked for so much.
  BOOST_TEST(new_tokens_of(100, std::nullopt, 256) == 157U);
  BOOST_TEST(new_tokens_of(256, 1, 256) == 1U);
  check_refused(257, 1, 256, "prompt",
                "the prompt has 257 tokens, the KV of this server holds 256 positions; shorten it");
}

BOOST_AUTO_TEST_CASE(is_cut_where_nobody_said_how_long) {
  BOOST_TEST(default_of(10) == 16U);
  BOOST_TEST(default_of(995) == 6U);
}

BOOST_AUTO_TEST_CASE(names_the_member_that_the_client_used) {
  static const served_model model{"m", "f", 1, {}};
  const session::service_limits limits{1000, 2048};
  const auto ask = parse_chat(
      R"({"model": "m", "messages": [{"role": "user", "content": "a"}], "max_completion_tokens": 1000})");
  BOOST_REQUIRE(ask);
  const auto order = order_maker(model, vocabulary(), limits).make(*ask);
  BOOST_REQUIRE(!order);
  BOOST_TEST(order.error().param == "max_completion_tokens");
}

BOOST_AUTO_TEST_SUITE_END()
