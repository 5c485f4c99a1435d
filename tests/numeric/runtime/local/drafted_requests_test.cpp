// Goal: whatever is drafted, answers are those without drafts, bit for bit; a rejected token leaves
// no trace. Method: mixed requests, half of them sampled with penalties, over tiny-12, plain and
// with drafts that are right, wrong, and right up to a random place.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <map>
#include <numeric>
#include <random>

#include "tests/numeric/runtime/local/mixed_requests.hpp"
#include "tests/support/golden.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

/// Knows the answers, and tells each token of them with a probability.
class guesser final : public session::drafter {
 public:
  guesser(const std::vector<answer>& known, double probability, std::uint64_t seed)
      : probability_(probability), random_(seed) {
    // The engine numbers its requests from 1.
    for (const answer& one : known) {
      std::map<std::uint32_t, token_id>& tokens = known_[request_id{known_.size() + 1}];
      for (std::size_t i = 0; i < one.tokens.size(); ++i)
        tokens[one.positions[i] + 1] = one.tokens[i];
    }
  }

  result<std::vector<flow::draft>> draft_after(const flow::step_table&,
                                               const session::step_outcome& outcome) override {
    std::vector<flow::draft> out;
    for (const flow::draft_order& order : outcome.orders) {
      flow::draft& made = out.emplace_back();
      made.request = order.request;
      made.position = order.position;
      for (std::uint32_t i = 1; i <= order.tokens_max; ++i)
        made.tokens.push_back(guess(order.request, order.position + i));
    }
    return out;
  }

 private:
  token_id guess(request_id request, std::uint32_t position) {
    const auto known = known_.at(request).find(position);
    const bool right = std::uniform_real_distribution<double>()(random_) < probability_;
    return right && known != known_.at(request).end() ? known->second
                                                      : static_cast<token_id>(3 + random_() % 500);
  }

  std::map<request_id, std::map<std::uint32_t, token_id>> known_;
  double probability_;
  std::mt19937_64 random_;
};

std::vector<session::generation_request> sampled_requests() {
  std::vector<session::generation_request> out = mixed_requests(2);
  out.resize(10);
  for (std::size_t i = 0; i < out.size(); i += 2) {
    out[i].sampling.temperature = 0.8F;
    out[i].sampling.seed = i;
    out[i].sampling.repetition_penalty = 1.2F;
    out[i].sampling.presence_penalty = 0.5F;
  }
  return out;
}

/// Recorded prompts of the trained checkpoint: greedy, sampled with and without penalties, and in
/// mode bounded, where the drafter's windows begin with the rows that enter the decoder.
std::vector<session::generation_request> recorded_requests() {
  std::vector<session::generation_request> out;
  for (const char* prompt : {"chat-name", "story-lily", "story-text"})
    for (const bool sampled : {false, true}) {
      session::generation_request& one = out.emplace_back();
      const golden_file file("cedar-tiny/" + std::string(prompt) + ".safetensors");
      for (const std::int64_t token : file.integers("tokens"))
        one.prompt.push_back(static_cast<token_id>(token));
      one.new_tokens_max = 40;
      one.ignore_eos = true;
      one.want_logits = true;
      one.sampling.temperature = sampled ? 0.8F : 0.0F;
      one.sampling.seed = 5;
    }
  out[1].sampling.presence_penalty = 0.3F;
  for (const std::size_t bounded : {4, 5}) out[bounded].mode = session::prefill_mode::bounded;
  return out;
}

std::uint32_t sum_of(const std::vector<answer>& answers, std::uint32_t session::usage::*number) {
  return std::accumulate(
      answers.begin(), answers.end(), 0U,
      [&](std::uint32_t sum, const answer& one) { return sum + one.used.*number; });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(drafted_requests)

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_DATA_TEST_CASE(get_the_bits_of_plain_ones, boost::unit_test::data::make({0.0, 0.6, 1.0}),
                     probability) {
  const small_model model;
  const auto requests = sampled_requests();
  local::engine_options options{
      .rows_per_step = 48, .requests_max = requests_count, .context_max = context};
  const auto plain = model.run(requests, options);
  BOOST_TEST(sum_of(plain, &session::usage::drafted_tokens) == 0U);

  guesser guesses(plain, probability, 1);
  options.draft_tokens = 5;
  options.drafter = &guesses;
  const auto drafted = model.run(requests, options);
  check_same(drafted, plain);
  const std::uint32_t verified = sum_of(drafted, &session::usage::drafted_tokens);
  const std::uint32_t accepted = sum_of(drafted, &session::usage::accepted_tokens);
  BOOST_TEST_MESSAGE(verified << " drafted tokens, " << accepted << " accepted");
  BOOST_TEST(verified > 50U);
  if (probability == 1.0) BOOST_TEST(accepted == verified);
  if (probability == 0.6) BOOST_TEST((accepted > 10U && accepted < verified));

  options.draft_policy = true;
  check_same(model.run(requests, options), plain);
  options.draft_policy = false;

  if (probability != 0.6) return;
  // KV for about five: drafts take only what nobody holds.
  options.kv_positions = 5 * 128;
  check_same(model.run(requests, options), plain);
}

// The checkpoint's authors count 3.8 tokens a step on average over greedy answers; bits are the
// same everywhere, so a fixed floor is safe.
BOOST_AUTO_TEST_CASE(by_the_models_own_drafter_get_the_bits_of_plain_ones) {
  const small_model model(CEDAR_SOURCE_DIR "/configs/models/cedar-tiny");
  const auto requests = recorded_requests();
  local::engine_options options{.rows_per_step = 64, .requests_max = 8, .context_max = 1024};
  const auto plain = model.run(requests, options);
  options.draft_tokens = 5;
  const auto drafted = model.run(requests, options);
  check_same(drafted, plain);
  options.draft_policy = true;
  check_same(model.run(requests, options), plain);
  for (std::size_t i = 0; i < drafted.size(); ++i) {
    const session::usage& used = drafted[i].used;
    const std::uint32_t after_first = used.completion_tokens - 1;
    const double per_step =
        static_cast<double>(after_first) / static_cast<double>(after_first - used.accepted_tokens);
    BOOST_TEST_MESSAGE("request " << i << ": " << per_step << " tokens a step");
    BOOST_TEST(per_step > 2.0);
  }
}

// What was measured before the first request decides how much is drafted, and no token.
BOOST_AUTO_TEST_CASE(after_a_measurement_get_the_bits_of_plain_ones) {
  const small_model model(CEDAR_SOURCE_DIR "/configs/models/cedar-tiny");
  const auto requests = recorded_requests();
  local::engine_options options{.rows_per_step = 64, .requests_max = 8, .context_max = 1024};
  const auto plain = model.run(requests, options);
  BOOST_TEST(model.open(options)->measure_costs()->steps == 0U);  // nobody drafts

  options.draft_policy = true;
  const auto engine = model.open(options);
  const auto measured = engine->measure_costs();
  BOOST_REQUIRE(measured);
  BOOST_TEST_MESSAGE("measured " << session::to_string(*measured));
  BOOST_TEST(measured->steps > 0U);
  BOOST_TEST(engine->policy()->wants_drafts(1));
  BOOST_TEST((engine->policy()->report() == session::draft_policy(5, 64).report()));
  const cache_bytes held = engine->caches();
  BOOST_TEST(held.total() == 0U);
  check_same(answers_of(*engine, requests), plain);
}

BOOST_AUTO_TEST_SUITE_END()
