// Goal: a request that begins with a kept prefix gets, in modes exact and halo, the bits of a run
// from position 0, and in mode bounded what the contract says, whatever the chunks, the batch, the
// drafts and the room; usage says what was reused. Method: tiny-12; one engine that keeps prefixes
// against engines that know nothing.
#include <boost/test/unit_test.hpp>
#include <set>

#include "runtime/session/halo.hpp"
#include "tests/numeric/runtime/local/mixed_requests.hpp"

using namespace cedar;
using namespace cedar::test;
using session::prefill_mode;

namespace {

constexpr std::uint32_t long_context = 640;

const small_model& tiny() {
  static const small_model opened;
  return opened;
}

/// Rows that mode exact replays.
std::uint32_t exact_replay() {
  return static_cast<std::uint32_t>(
      session::halo_rows(tiny().config().window, tiny().config().layers));
}

std::vector<token_id> ids(std::uint32_t seed, std::size_t count) {
  std::vector<token_id> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<token_id>(3 + (seed * 71 + i * i * 13 + i * 5) % 500);
  return out;
}

session::generation_request ask(std::vector<token_id> prompt, prefill_mode mode) {
  session::generation_request out;
  out.prompt = std::move(prompt);
  out.mode = mode;
  out.new_tokens_max = 5;
  out.ignore_eos = true;
  out.want_logits = true;
  return out;
}

std::vector<token_id> joined(std::vector<token_id> a, const std::vector<token_id>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

local::engine_options options_of(std::uint64_t prefix_positions, std::uint32_t rows = 64) {
  return {.rows_per_step = rows,
          .requests_max = 4,
          .context_max = long_context,
          .prefix_positions = prefix_positions};
}

answer alone(const session::generation_request& one) {
  return tiny().run({one}, options_of(0)).front();
}

void check_bits_of_cold(local::local_engine& warm, const session::generation_request& one,
                        std::uint32_t cached) {
  const auto made = answers_of(warm, {one});
  check_same(made, {alone(one)});
  BOOST_TEST(made[0].used.cached_tokens == cached);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(prefix)

// Lengths beyond eight windows, odd and even, so that hits end within pages, groups and windows.
BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_AUTO_TEST_CASE(exact_and_halo_give_the_bits_of_a_cold_run_at_every_hit) {
  for (const prefill_mode first : {prefill_mode::exact, prefill_mode::bounded}) {
    const auto warm = tiny().open(options_of(4096));
    const auto base = ids(1, 420);
    (void)answers_of(*warm, {ask(base, first)});
    std::uint32_t hits = 0;
    for (std::size_t common = 5; common < base.size(); common += 59) {
      const std::vector<token_id> begin(base.begin(), base.begin() + common);
      for (const prefill_mode mode : {prefill_mode::exact, prefill_mode::halo}) {
        const auto one = ask(joined(begin, ids(7, 23)), mode);
        const auto made = answers_of(*warm, {one});
        check_same(made, {alone(one)});
        const session::usage& used = made[0].used;
        const auto even = static_cast<std::uint32_t>(common / 2 * 2);
        BOOST_TEST(used.matched_tokens >= even);
        if (mode == prefill_mode::exact && common < exact_replay())
          BOOST_TEST(used.cached_tokens == 0U);  // it recomputed, and says so
        if (used.cached_tokens == 0) continue;
        ++hits;
        BOOST_TEST(used.replayed_rows < used.cached_tokens);
        BOOST_TEST(used.encoder_rows ==
                   one.prompt.size() + 4 - used.cached_tokens + used.replayed_rows);
      }
    }
    BOOST_TEST(hits > 6U);
  }
}

BOOST_AUTO_TEST_CASE(a_bounded_hit_replays_a_window_and_is_the_same_in_any_chunks) {
  const std::uint32_t window = tiny().config().window;
  const auto base = ids(2, 300);
  const auto next = ask(joined(base, ids(8, 41)), prefill_mode::bounded);
  std::vector<answer> first;
  for (const std::uint32_t rows : {64U, 7U, 16U}) {
    const auto warm = tiny().open(options_of(4096, rows));
    (void)answers_of(*warm, {ask(base, prefill_mode::bounded)});
    // With another request in the same steps, too.
    const auto made = answers_of(*warm, {next, ask(ids(3, 50), prefill_mode::exact)});
    const session::usage& used = made[0].used;
    BOOST_TEST(used.cached_tokens == 300U);
    BOOST_TEST(used.replayed_rows == window);
    BOOST_TEST(used.encoder_rows == window + 41 + 4);
    BOOST_TEST(used.decoder_rows == window + 4);
    if (first.empty()) first = made;
    check_same(made, first);
  }
  const answer cold = alone(next);
  BOOST_TEST(first[0].logits.size() == cold.logits.size());
  BOOST_TEST(first[0].logits != cold.logits);  // approximate, as the contract says
}

BOOST_AUTO_TEST_CASE(a_hit_within_the_window_computes_everything) {
  const auto warm = tiny().open(options_of(4096));
  const auto base = ids(4, 40);
  (void)answers_of(*warm, {ask(base, prefill_mode::bounded)});
  const std::vector<token_id> begin(base.begin(), base.begin() + tiny().config().window);
  check_bits_of_cold(*warm, ask(joined(begin, ids(9, 30)), prefill_mode::bounded), 0);
}

BOOST_AUTO_TEST_CASE(what_was_made_after_a_truncated_replay_serves_bounded_requests_only) {
  const auto warm = tiny().open(options_of(4096));
  const auto base = ids(5, 250);
  (void)answers_of(*warm, {ask(base, prefill_mode::exact)});
  const auto longer = joined(base, ids(10, 100));
  BOOST_TEST(answers_of(*warm, {ask(longer, prefill_mode::bounded)})[0].used.cached_tokens == 250U);
  const auto longest = joined(longer, ids(11, 20));
  check_bits_of_cold(*warm, ask(longest, prefill_mode::exact), 250);
  check_bits_of_cold(*warm, ask(joined(longest, {4}), prefill_mode::halo), 370);
  BOOST_TEST(answers_of(*warm, {ask(joined(longest, {5, 6}), prefill_mode::bounded)})[0]
                 .used.cached_tokens == 370U);
}

BOOST_AUTO_TEST_CASE(growing_turns_reuse_their_history_answers_included) {
  for (const prefill_mode mode : {prefill_mode::bounded, prefill_mode::halo}) {
    auto options = options_of(4096);
    options.draft_tokens = mode == prefill_mode::halo ? 3 : 0;
    const auto warm = tiny().open(options);
    auto turn = ask(ids(6, 200), mode);
    for (std::uint32_t round = 0; round < 5; ++round) {
      const answer made = answers_of(*warm, {turn}).front();
      if (mode == prefill_mode::halo) check_same({made}, {alone(turn)});
      // All of the last turn and its answer, but the answer's last token, which had no row.
      if (round > 0) BOOST_TEST(made.used.cached_tokens == (turn.prompt.size() - 11 - 1) / 2 * 2);
      turn.prompt = joined(turn.prompt, made.tokens);
      turn.prompt = joined(turn.prompt, ids(20 + round, 11));
    }
  }
}

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_AUTO_TEST_CASE(requests_together_with_little_room_get_the_bits_of_cold_runs) {
  std::vector<session::generation_request> asks;
  std::vector<answer> expected;
  const auto base = ids(12, 230);
  for (std::uint32_t i = 0; i < 9; ++i) {
    const std::vector<token_id> begin(base.begin(), base.begin() + 190 + 4 * i);
    asks.push_back(ask(joined(begin, ids(30 + i, 17 * i + 1)),
                       i % 2 == 0 ? prefill_mode::exact : prefill_mode::halo));
    asks.back().new_tokens_max = i == 0 ? 68 : 30;  // the oldest grows
    expected.push_back(alone(asks.back()));
  }
  for (const bool drafted : {false, true}) {
    auto options = options_of(5 * 128, 48);
    options.kv_positions = 7 * 128;
    options.draft_tokens = drafted ? 4 : 0;
    const auto warm = tiny().open(options);
    check_same(answers_of(*warm, asks), expected);
    std::uint32_t hits = 0, preemptions = 0;
    for (const int round : {1, 2}) {
      BOOST_TEST_CONTEXT("round " << round) {
        const auto made = answers_of(*warm, asks);
        check_same(made, expected);
        for (const answer& one : made) {
          hits += one.used.cached_tokens > 0;
          preemptions += one.used.preemptions;
        }
      }
    }
    BOOST_TEST_MESSAGE(hits << " hits, " << preemptions << " preemptions");
    BOOST_TEST(hits > 0U);
    if (!drafted) BOOST_TEST(preemptions > 0U);
    BOOST_TEST(warm->layers().pages().pages_in_use() > 0U);
  }
}

BOOST_TEST_DECORATOR(*boost::unit_test::label("values"))
BOOST_AUTO_TEST_CASE(penalties_and_probes_see_every_row) {
  const auto warm = tiny().open(options_of(4096));
  const auto base = ids(13, 400);
  (void)answers_of(*warm, {ask(base, prefill_mode::exact)});
  auto punished = ask(joined(base, {9, 8, 7}), prefill_mode::exact);
  punished.sampling.repetition_penalty = 1.3F;
  check_bits_of_cold(*warm, punished, 0);
  auto probed = ask(joined(base, {9, 8, 6}), prefill_mode::exact);
  probed.taps = {"L3.attn.out"};
  check_bits_of_cold(*warm, probed, 0);
  auto every_row = ask(joined(base, {9, 8, 5}), prefill_mode::exact);
  every_row.prompt_logits = 403;
  check_bits_of_cold(*warm, every_row, 0);
}

BOOST_AUTO_TEST_SUITE_END()
