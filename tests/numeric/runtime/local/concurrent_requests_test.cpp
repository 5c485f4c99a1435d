// Goal: many requests at once get the bits that each gets alone, also while they take KV from each
// other. Method: random requests of mixed lengths and modes over tiny-12, one by one in chunks of
// one size, then all together with room for all and with KV for a few.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>

#include "kernels/registry/registry.hpp"
#include "runtime/local/local_engine.hpp"

using namespace cedar;

namespace {

constexpr std::uint32_t requests_count = 20;
constexpr std::uint32_t context = 320;

struct answer {
  std::vector<std::uint32_t> positions;
  std::vector<token_id> tokens;
  std::vector<float> logits;
  session::finish_reason finish = session::finish_reason::none;
  session::usage used;
};

struct tiny_model {
  std::unique_ptr<stage::model_source> source;
  std::unique_ptr<kernels::backend> backend = kernels::make_backend("cpu");

  tiny_model() {
    auto opened = stage::model_source::open(CEDAR_TEST_DATA "/golden/tiny-12");
    BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
    source = std::move(*opened);
    BOOST_REQUIRE(backend != nullptr);
  }

  std::vector<answer> run(const std::vector<session::generation_request>& requests,
                          const local::engine_options& options) const {
    const auto engine = local::local_engine::open(*source, *backend, options);
    BOOST_REQUIRE_MESSAGE(engine, (engine ? "" : engine.error().message));
    std::vector<answer> out(requests.size());
    const auto used = (*engine)->generate(
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
    BOOST_TEST((*engine)->layers().pages().pages_in_use() == 0U);
    return out;
  }
};

/// Some of a few tokens, some of a page's length, some long; most of them grow beyond a page.
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

void check_same(const std::vector<answer>& together, const std::vector<answer>& alone) {
  for (std::size_t i = 0; i < alone.size(); ++i) {
    BOOST_TEST_INFO_SCOPE("request " << i);
    BOOST_TEST(together[i].positions == alone[i].positions, boost::test_tools::per_element());
    BOOST_TEST(together[i].tokens == alone[i].tokens, boost::test_tools::per_element());
    BOOST_TEST((together[i].finish == alone[i].finish));
    BOOST_TEST_REQUIRE(together[i].logits.size() == alone[i].logits.size());
    BOOST_TEST(std::memcmp(together[i].logits.data(), alone[i].logits.data(),
                           alone[i].logits.size() * sizeof(float)) == 0);
    BOOST_TEST(together[i].used.completion_tokens == alone[i].used.completion_tokens);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(concurrent_requests)

BOOST_AUTO_TEST_CASE(get_the_bits_that_each_gets_alone) {
  const tiny_model model;
  const auto requests = mixed_requests(1);
  std::vector<answer> alone;
  for (const session::generation_request& one : requests)
    alone.push_back(
        model.run({one}, {.rows_per_step = 64, .requests_max = 1, .context_max = context}).front());

  const auto together = model.run(
      requests, {.rows_per_step = 48, .requests_max = requests_count, .context_max = context});
  check_same(together, alone);
  for (const answer& one : together) BOOST_TEST(one.used.preemptions == 0U);

  // Seven granules of 128 positions: about as many requests at once, until they grow.
  const auto scarce = model.run(requests, {.rows_per_step = 48,
                                           .requests_max = requests_count,
                                           .context_max = context,
                                           .kv_positions = 7 * 128});
  check_same(scarce, alone);
  std::uint32_t preemptions = 0;
  for (std::size_t i = 0; i < scarce.size(); ++i) {
    preemptions += scarce[i].used.preemptions;
    BOOST_TEST((scarce[i].used.encoder_rows > alone[i].used.encoder_rows) ==
               (scarce[i].used.preemptions > 0));
  }
  BOOST_TEST(preemptions > 0U);
}

BOOST_AUTO_TEST_SUITE_END()
