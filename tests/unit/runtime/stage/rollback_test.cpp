// Goal: rows that a verdict takes back never happened. Method: steps of true ids followed by wrong
// ones, as a draft would be; the verdict keeps the true ones. All later rows must have the bits of
// a run without wrong rows, wherever the cut falls: inside a group of ratio 2, at its end, before
// and after the window has filled and its ring has wrapped.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <random>

#include "runtime/stage/sequence_state.hpp"
#include "tests/unit/runtime/stage/tiny_model.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

constexpr request_id one{1};

/// One step of `kept` true rows from `first` on and `wrong` others; the verdict keeps the true
/// ones.
void draft(tiny_run& run, const std::vector<token_id>& ids, std::uint32_t first, std::uint32_t kept,
           std::uint32_t wrong, std::uint64_t seed) {
  std::vector<token_id>& tokens = run.ids[one];
  tokens.assign(ids.begin(), ids.begin() + first + kept);
  const auto others = random_tokens(seed, wrong);
  tokens.insert(tokens.end(), others.begin(), others.end());
  run.step({{one, first, kept + wrong}});
  run.settle(wrong);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rollback)

BOOST_AUTO_TEST_CASE(as_many_rows_as_the_slack_can_be_taken_back_anywhere) {
  constexpr std::uint32_t rows = 28;
  const auto ids = random_tokens(1, rows);
  const auto whole = logits_alone(ids);
  const std::uint32_t slack = stage::ring_slack(tiny_model().config());
  BOOST_TEST(slack == 6U);
  for (std::uint32_t wrong = 1; wrong <= slack; ++wrong)
    for (const std::uint32_t cut : {1U, 2U, 15U, 16U, 21U, 22U, 23U}) {
      // As many rows as may be, everywhere; fewer of them here and there.
      if (wrong < slack && (wrong + cut) % 3 != 0) continue;
      tiny_run run;
      run.ids[one] = ids;
      if (cut > 1) run.step({{one, 0, cut - 1}});
      draft(run, ids, cut - 1, 1, wrong, cut * 10 + wrong);
      run.ids[one] = ids;
      run.step({{one, cut, 1}});
      run.settle();
      run.step({{one, cut + 1, rows - cut - 1}});
      for (std::uint32_t p = 0; p < rows; ++p)
        BOOST_REQUIRE_MESSAGE(same(run.logits.at({one, p}), whole[p]),
                              wrong << " rows taken back to " << cut << ", row " << p);
    }
}

BOOST_DATA_TEST_CASE(a_whole_answer_of_drafts_has_the_bits_of_plain_steps,
                     boost::unit_test::data::xrange(1, 4), seed) {
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  constexpr std::uint32_t rows = 60;
  const auto ids = random_tokens(100 + static_cast<std::uint64_t>(seed), rows);
  const auto whole = logits_alone(ids);
  const std::uint32_t slack = stage::ring_slack(tiny_model().config());
  tiny_run run;
  for (std::uint32_t first = 0; first < rows;) {
    const auto kept = std::min(1 + static_cast<std::uint32_t>(random() % slack), rows - first);
    draft(run, ids, first, kept, static_cast<std::uint32_t>(random() % (slack + 1)), random());
    for (std::uint32_t p = first; p < first + kept; ++p)
      BOOST_REQUIRE_MESSAGE(same(run.logits.at({one, p}), whole[p]), "row " << p);
    first += kept;
  }
}

BOOST_AUTO_TEST_CASE(a_whole_step_can_be_taken_back) {
  const auto ids = random_tokens(5, 30);
  const auto whole = logits_alone(ids);
  tiny_run run;
  run.ids[one] = ids;
  run.step({{one, 0, 20}});
  draft(run, ids, 20, 0, 5, 77);
  run.ids[one] = ids;
  run.step({{one, 20, 10}});
  for (std::uint32_t p = 20; p < 30; ++p) BOOST_REQUIRE(same(run.logits.at({one, p}), whole[p]));
}

BOOST_AUTO_TEST_CASE(a_late_verdict_does_not_take_back_what_a_later_step_wrote) {
  const auto ids = random_tokens(6, 30);
  const auto whole = logits_alone(ids);
  tiny_run run;
  run.ids[one] = ids;
  run.step({{one, 0, 10}});
  run.step({{one, 10, 10}});
  run.engine->apply({step_id{1}, {}, {{one, 10, false}}});
  run.step({{one, 20, 10}});
  run.engine->apply({step_id{2}, {}, {{one, 20, false}}});
  run.engine->apply({step_id{3}, {}, {{one, 30, false}}});
  for (std::uint32_t p = 0; p < 30; ++p) BOOST_REQUIRE(same(run.logits.at({one, p}), whole[p]));
}

BOOST_AUTO_TEST_CASE(pages_of_rows_that_were_taken_back_return) {
  // Owners of ratio 2, 2 and 1 with 64 entries a page: row 128 begins new pages everywhere.
  tiny_run run({200, 2, 256});
  const auto ids = random_tokens(7, 127);
  run.ids[one] = ids;
  run.step({{one, 0, 127}});
  run.settle();
  const std::size_t before = run.engine->layers().pages().pages_in_use();
  BOOST_TEST(before == 1U + 1U + 2U);
  draft(run, ids, 127, 0, 5, 1);
  BOOST_TEST(run.engine->layers().pages().pages_in_use() == before);
  run.finish(one);
  BOOST_TEST(run.engine->layers().pages().pages_in_use() == 0U);
  BOOST_TEST(run.engine->layers().sequences() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
