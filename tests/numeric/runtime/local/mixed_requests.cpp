#include "tests/numeric/runtime/local/mixed_requests.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>

#include "kernels/registry/registry.hpp"

namespace cedar::test {

small_model::small_model(const std::string& folder) : backend_(kernels::make_backend("cpu")) {
  auto opened = stage::model_source::open(folder);
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
  source_ = std::move(*opened);
  BOOST_REQUIRE(backend_ != nullptr);
}

std::unique_ptr<local::local_engine> small_model::open(const local::engine_options& options) const {
  auto engine = local::local_engine::open(*source_, *backend_, options);
  BOOST_REQUIRE_MESSAGE(engine, (engine ? "" : engine.error().message));
  return std::move(*engine);
}

std::vector<answer> small_model::run(const std::vector<session::generation_request>& requests,
                                     const local::engine_options& options) const {
  const auto engine = open(options);
  auto out = answers_of(*engine, requests);
  BOOST_TEST(engine->layers().pages().pages_in_use() == 0U);
  return out;
}

std::vector<answer> answers_of(local::local_engine& engine,
                               const std::vector<session::generation_request>& requests) {
  std::vector<answer> out(requests.size());
  const auto used = engine.generate(
      requests, {[&](std::size_t index, const session::row_event& row) {
                   answer& to = out[index];
                   to.positions.push_back(row.position);
                   to.tokens.push_back(row.token);
                   to.logits.insert(to.logits.end(), row.logits.begin(), row.logits.end());
                   to.finish = row.finish;
                 },
                 {}});
  BOOST_REQUIRE_MESSAGE(used, (used ? "" : used.error().message));
  for (std::size_t i = 0; i < out.size(); ++i) out[i].used = (*used)[i];
  BOOST_TEST(engine.layers().sequences() == 0U);
  BOOST_TEST(engine.image_rows_held() == 0U);
  return out;
}

std::vector<session::generation_request> mixed_requests(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<session::generation_request> out(requests_count);
  for (std::size_t i = 0; i < out.size(); ++i) {
    session::generation_request& one = out[i];
    const std::size_t length = i % 4 == 0   ? 1 + random() % 12
                               : i % 4 == 3 ? 128 + random() % 100
                                            : 116 + random() % 12;
    one.prompt.resize(length);
    for (token_id& id : one.prompt) id = static_cast<token_id>(3 + random() % 500);
    one.new_tokens_max = i % 4 == 0 ? 4 : 14 + static_cast<std::uint32_t>(random() % 6);
    one.ignore_eos = true;
    one.prompt_logits = 3;
    one.want_logits = true;
    one.mode = i % 2 == 0 ? session::prefill_mode::exact : session::prefill_mode::bounded;
  }
  return out;
}

void check_same(const std::vector<answer>& actual, const std::vector<answer>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    BOOST_TEST_INFO_SCOPE("request " << i);
    BOOST_TEST(actual[i].positions == expected[i].positions, boost::test_tools::per_element());
    BOOST_TEST(actual[i].tokens == expected[i].tokens, boost::test_tools::per_element());
    BOOST_TEST((actual[i].finish == expected[i].finish));
    BOOST_TEST_REQUIRE(actual[i].logits.size() == expected[i].logits.size());
    BOOST_TEST(std::memcmp(actual[i].logits.data(), expected[i].logits.data(),
                           expected[i].logits.size() * sizeof(float)) == 0);
    BOOST_TEST(actual[i].used.completion_tokens == expected[i].used.completion_tokens);
  }
}

}  // namespace cedar::test
