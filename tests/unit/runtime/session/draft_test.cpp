// Goal: what is ordered of a drafter, and what becomes of its answers. Method: small runs by hand
// over a fake pipeline (fake_pipeline.hpp).
#include <boost/test/unit_test.hpp>

#include "runtime/session/step_scheduler.hpp"
#include "tests/unit/runtime/session/fake_pipeline.hpp"

using namespace cedar;
using namespace cedar::session;

namespace {

/// One request of the prompt {2, 3}, run to its first order. The model's choices are given by hand.
struct drafted_request {
  explicit drafted_request(scheduler_limits limits = {}, std::uint32_t new_tokens_max = 10)
      : core(with_defaults(limits)) {
    generation_request ask;
    ask.prompt = {2, 3};
    ask.new_tokens_max = new_tokens_max;
    const auto ids = core.submit({ask});
    BOOST_REQUIRE(ids);
    id = ids->front();
  }

  static scheduler_limits with_defaults(scheduler_limits limits) {
    if (limits.rows_per_step == 1) limits.rows_per_step = 8;
    if (limits.context_max == 1) limits.context_max = 20;
    limits.queue_max = 4;
    limits.requests_max = 4;
    limits.vocabulary = 50;
    if (limits.draft_tokens_max == 0) limits.draft_tokens_max = 5;
    return limits;
  }

  flow::step_table step() {
    auto table = core.next_step();
    BOOST_REQUIRE(table);
    return *table;
  }

  /// The model chooses `tokens` for the wanted rows of the step.
  step_outcome choose(const flow::step_table& table, const std::vector<token_id>& tokens) {
    flow::proposal out{table.step, table.epoch, {}, {}};
    std::size_t next = 0;
    for (const flow::row_span& span : table.spans)
      for (std::uint32_t i = span.logits_from; i < span.rows_count; ++i)
        out.tokens.push_back({span.request, span.first_position + i, tokens.at(next++), 0});
    auto outcome = core.accept(out);
    BOOST_REQUIRE(outcome);
    return *outcome;
  }

  step_scheduler core;
  request_id id;
};

std::vector<token_id> tokens_of(const step_outcome& outcome) {
  std::vector<token_id> out;
  for (const row_event& event : outcome.events) out.push_back(event.token);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(drafts)

BOOST_AUTO_TEST_CASE(are_ordered_after_the_prompt_and_hold_the_request_back) {
  drafted_request one;
  const step_outcome outcome = one.choose(one.step(), {7});
  BOOST_REQUIRE(outcome.orders.size() == 1U);
  BOOST_TEST((outcome.orders.front() == flow::draft_order{one.id, 7, 2, 5}));
  BOOST_TEST(!one.core.next_step());
  BOOST_REQUIRE(one.core.offer({one.id, 2, {}}));
  const flow::step_table table = one.step();
  BOOST_TEST(table.tokens == (std::vector<token_id>{7}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(stand_up_to_the_first_token_that_is_chosen_otherwise) {
  drafted_request one;
  one.choose(one.step(), {7});
  BOOST_REQUIRE(one.core.offer({one.id, 2, {8, 9, 10, 11}}));
  const flow::step_table table = one.step();
  BOOST_TEST(table.tokens == (std::vector<token_id>{7, 8, 9, 10, 11}),
             boost::test_tools::per_element());
  BOOST_TEST(table.spans.front().logits_from == 0U);
  const step_outcome outcome = one.choose(table, {8, 9, 30, 31, 32});
  BOOST_TEST(tokens_of(outcome) == (std::vector<token_id>{8, 9, 30}),
             boost::test_tools::per_element());
  BOOST_TEST((outcome.verdict.commitments.front() == flow::commitment{one.id, 5, false}));
  BOOST_TEST((outcome.orders.front() == flow::draft_order{one.id, 30, 5, 5}));
  BOOST_TEST(one.core.usage_of(one.id)->drafted_tokens == 4U);
  BOOST_TEST(one.core.usage_of(one.id)->accepted_tokens == 2U);
  BOOST_REQUIRE(one.core.offer({one.id, 5, {}}));
  const flow::step_table next = one.step();
  BOOST_TEST(next.spans.front().first_position == 5U);
  BOOST_TEST(next.tokens == (std::vector<token_id>{30}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(end_with_the_end_of_sequence_among_them) {
  drafted_request one;
  one.choose(one.step(), {7});
  BOOST_REQUIRE(one.core.offer({one.id, 2, {8, 1, 9}}));
  const step_outcome outcome = one.choose(one.step(), {8, 1, 9, 9});
  BOOST_TEST(tokens_of(outcome) == (std::vector<token_id>{8, 1}), boost::test_tools::per_element());
  BOOST_TEST((outcome.events.back().finish == finish_reason::stop));
  BOOST_TEST((outcome.verdict.commitments.front() == flow::commitment{one.id, 4, true}));
  BOOST_TEST(outcome.orders.empty());
  BOOST_TEST(one.core.requests() == 0U);
}

BOOST_AUTO_TEST_CASE(are_never_more_than_could_be_used) {
  // Of four tokens the first is made by the prompt, and one by the row of the last token.
  drafted_request few({}, 4);
  const step_outcome outcome = few.choose(few.step(), {7});
  BOOST_TEST(outcome.orders.front().tokens_max == 2U);
  BOOST_REQUIRE(few.core.offer({few.id, 2, {8, 9, 10, 11}}));
  const flow::step_table table = few.step();
  BOOST_TEST(table.tokens == (std::vector<token_id>{7, 8, 9}), boost::test_tools::per_element());
  BOOST_TEST((few.choose(table, {8, 9, 10}).events.back().finish == finish_reason::length));

  // Two tokens: nothing to draft, so nobody waits.
  drafted_request two({}, 2);
  BOOST_TEST(two.choose(two.step(), {7}).orders.empty());
  BOOST_TEST(two.step().tokens.size() == 1U);

  // The context ends at position 4.
  drafted_request narrow({.context_max = 4});
  BOOST_TEST(narrow.choose(narrow.step(), {7}).orders.front().tokens_max == 1U);
}

BOOST_AUTO_TEST_CASE(leave_a_row_to_everybody_else) {
  drafted_request one({.rows_per_step = 4});
  one.choose(one.step(), {7});
  generation_request other;
  other.prompt = {4, 5, 6};
  BOOST_REQUIRE(one.core.submit({other}));
  BOOST_REQUIRE(one.core.offer({one.id, 2, {8, 9, 10, 11}}));
  const flow::step_table table = one.step();
  BOOST_REQUIRE(table.spans.size() == 2U);
  BOOST_TEST(table.spans.front().rows_count == 3U);
  BOOST_TEST(table.spans.back().rows_count == 1U);
}

BOOST_AUTO_TEST_CASE(take_only_kv_that_nobody_holds) {
  drafted_request one({.steps_in_flight = 2, .kv_granule = 2, .kv_granules = 3}, 4);
  one.choose(one.step(), {7});
  generation_request other;
  other.prompt = {4};
  other.new_tokens_max = 1;
  BOOST_REQUIRE(one.core.submit({other}));
  const flow::step_table prompt = one.step();
  BOOST_REQUIRE(prompt.tokens.size() == 1U);  // it holds the third granule now
  BOOST_REQUIRE(one.core.offer({one.id, 2, {8, 9}}));
  one.choose(prompt, {1});
  BOOST_TEST(one.step().tokens.size() == 3U);  // the third is free again

  drafted_request poor({.kv_granule = 2, .kv_granules = 3}, 4);
  poor.choose(poor.step(), {7});
  BOOST_REQUIRE(poor.core.submit({other}));
  BOOST_REQUIRE(poor.core.offer({poor.id, 2, {8, 9}}));
  BOOST_TEST(poor.step().spans.front().rows_count == 2U);  // positions 2 and 3 of its own
}

BOOST_AUTO_TEST_CASE(give_their_kv_back_when_they_are_rejected) {
  drafted_request one({.kv_granule = 2});
  one.choose(one.step(), {7});
  BOOST_REQUIRE(one.core.offer({one.id, 2, {8, 9, 10}}));
  const flow::step_table table = one.step();
  BOOST_TEST(one.core.load().kv_positions == 6U);
  one.choose(table, {30, 31, 32, 33});
  BOOST_TEST(one.core.load().kv_positions == 4U);
}

BOOST_AUTO_TEST_CASE(end_before_an_image) {
  drafted_request one({.image_token = 40});
  one.choose(one.step(), {7});
  BOOST_REQUIRE(one.core.offer({one.id, 2, {8, 40, 9}}));
  BOOST_TEST(one.step().tokens == (std::vector<token_id>{7, 8}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(keep_the_place_of_their_step_for_all_who_can_go_on) {
  const auto begin_two = [](drafted_request& first) {
    const flow::step_table table = first.step();
    generation_request ask;
    ask.prompt = {4, 5};
    BOOST_REQUIRE(first.core.submit({ask}));
    first.step();
    BOOST_REQUIRE(first.core.submit({ask}));
    BOOST_TEST(!first.core.next_step());
    BOOST_TEST(first.choose(table, {7}).orders.size() == 1U);
    BOOST_TEST(!first.core.next_step());
  };
  drafted_request drafted({.steps_in_flight = 2});
  begin_two(drafted);
  BOOST_REQUIRE(drafted.core.offer({drafted.id, 2, {8}}));
  BOOST_TEST(drafted.step().tokens == (std::vector<token_id>{7, 8, 4, 5}),
             boost::test_tools::per_element());

  drafted_request cancelled({.steps_in_flight = 2});
  begin_two(cancelled);
  cancelled.core.cancel(cancelled.id);
  BOOST_TEST(cancelled.step().tokens == (std::vector<token_id>{4, 5}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(that_come_late_are_ignored_and_wrong_ones_refused) {
  drafted_request one;
  one.choose(one.step(), {7});
  const auto refused = [&](const flow::draft& offered) {
    const result<void> taken = one.core.offer(offered);
    return !taken && taken.error().code == errc::mismatch;
  };
  BOOST_TEST(refused({one.id, 3, {8}}));
  BOOST_TEST(refused({one.id, 2, {8, 50}}));
  BOOST_TEST(refused({one.id, 2, {-1}}));
  BOOST_TEST(refused({one.id, 2, std::vector<token_id>(6, 8)}));
  BOOST_TEST(refused({one.id, 2, {8, 9}, {0.5F}}));
  BOOST_TEST(!one.core.next_step());
  BOOST_TEST(!!one.core.offer({one.id, 1, {8}}));
  BOOST_TEST(!!one.core.offer({request_id{99}, 2, {8}}));
  BOOST_TEST(!one.core.next_step());
  BOOST_TEST(!!one.core.offer({one.id, 2, {8}}));
  BOOST_TEST(!!one.core.offer({one.id, 2, {9}}));
  BOOST_TEST(one.step().tokens == (std::vector<token_id>{7, 8}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(of_cancelled_requests_do_not_keep_them) {
  drafted_request one;
  one.choose(one.step(), {7});
  one.core.cancel(one.id);
  const flow::step_table table = one.step();
  BOOST_TEST(table.tokens.size() == 1U);
  const step_outcome outcome = one.choose(table, {8});
  BOOST_TEST(outcome.verdict.commitments.front().finished);
  BOOST_TEST(outcome.orders.empty());
  BOOST_TEST(one.core.requests() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
