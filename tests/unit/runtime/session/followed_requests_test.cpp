// Goal: the scheduler says what the drafter takes of each span, and whether it has to hear of a
// step at all. Method: small runs by hand over a fake pipeline (fake_pipeline.hpp), with and
// without a policy whose times are made up.
#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime/session/fake_pipeline.hpp"

using namespace cedar;
using namespace cedar::session;
using flow::tap_use;

namespace {

scheduler_limits limits_of(std::uint32_t draft_tokens) {
  return {.rows_per_step = 4,
          .requests_max = 2,
          .queue_max = 4,
          .context_max = 400,
          .vocabulary = 50,
          .eos_tokens = {1},
          .draft_tokens_max = draft_tokens};
}

generation_request asked(std::uint32_t prompt_tokens) {
  generation_request ask;
  for (std::uint32_t i = 0; i < prompt_tokens; ++i)
    ask.prompt.push_back(static_cast<token_id>(i + 2));
  ask.new_tokens_max = 300;
  ask.ignore_eos = true;
  return ask;
}

/// One request, step by step; every order gets an empty draft.
struct single_run {
  explicit single_run(const generation_request& ask, draft_policy* with = nullptr,
                      std::uint32_t draft_tokens = 3)
      : policy(with), limits(limits_of(draft_tokens)), core(limits, with), pipeline(limits) {
    BOOST_REQUIRE(core.submit({ask}));
  }

  /// The only span of the next step, which takes `seconds`.
  flow::row_span step(double seconds = 1) {
    const auto next = core.next_step();
    BOOST_REQUIRE(next);
    BOOST_REQUIRE(next->spans.size() == 1U);
    table = *next;
    pipeline.take(table);
    outcome = *core.accept(pipeline.answer());
    pipeline.apply(outcome.verdict);
    if (policy != nullptr) policy->step_took(seconds);
    for (const flow::draft_order& order : outcome.orders) {
      if (policy != nullptr) policy->drafts_took(1, 0.1);
      BOOST_REQUIRE(core.offer({order.request, order.position, {}, {}}));
    }
    return table.spans.front();
  }

  draft_policy* policy;
  scheduler_limits limits;
  step_scheduler core;
  test::fake_pipeline pipeline;
  flow::step_table table;
  step_outcome outcome;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(followed_requests)

BOOST_AUTO_TEST_CASE(begin_with_the_last_rows_of_their_prompts) {
  single_run run(asked(10));
  BOOST_TEST((run.step().taps == tap_use::none));
  BOOST_TEST((run.step().taps == tap_use::none));
  BOOST_TEST(run.outcome.orders.empty());
  BOOST_TEST((run.step().taps == tap_use::window));
  BOOST_TEST(run.outcome.orders.size() == 1U);
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST((run.step().taps == tap_use::rows));
    BOOST_TEST(run.core.drafter_hears());
    BOOST_TEST(run.outcome.orders.size() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(are_none_where_nobody_drafts) {
  single_run run(asked(6), nullptr, 0);
  for (int i = 0; i < 4; ++i) {
    BOOST_TEST((run.step().taps == tap_use::rows));
    BOOST_TEST(!run.core.drafter_hears());
  }
}

BOOST_AUTO_TEST_CASE(are_those_that_may_still_have_drafts) {
  generation_request ask = asked(4);
  ask.new_tokens_max = 4;
  single_run run(ask);
  // After the next token there are to be two more, one, none.
  BOOST_TEST((run.step().taps == tap_use::window));
  BOOST_TEST((run.step().taps == tap_use::rows));
  BOOST_TEST((run.step().taps == tap_use::none));
  BOOST_TEST(run.core.drafter_hears());
  ask.new_tokens_max = 1;
  single_run other(ask);
  BOOST_TEST((other.step().taps == tap_use::none));
  ask = asked(4);
  ask.forced = {5, 6, 7};
  single_run forced(ask);
  BOOST_TEST((forced.step().taps == tap_use::none));
}

BOOST_AUTO_TEST_CASE(are_followed_once_the_policy_wants_drafts_and_as_long) {
  draft_policy policy(3, 4);
  generation_request ask = asked(4);
  ask.sampling.temperature = 0.5F;
  single_run run(ask, &policy);
  BOOST_TEST((run.step().taps == tap_use::none));  // the prompt
  BOOST_TEST(run.table.sampling.size() == 1U);
  for (std::uint32_t i = 0; i < draft_policy::trial_steps; ++i) {
    BOOST_TEST((run.step().taps == tap_use::none));
    BOOST_TEST(!run.core.drafter_hears());
    BOOST_TEST(run.outcome.orders.empty());
  }
  BOOST_TEST((run.step().taps == tap_use::window));
  BOOST_TEST(run.core.drafter_hears());
  BOOST_TEST(run.outcome.orders.size() == 1U);
  BOOST_TEST(run.table.sampling.size() == 1U);  // it did not listen when the request began
  std::uint32_t followed = 0;
  while (run.step().taps == tap_use::rows) ++followed;  // empty drafts do not pay
  BOOST_TEST(followed == draft_policy::trial_steps);
  BOOST_TEST((run.table.spans.front().taps == tap_use::none));
  BOOST_TEST(run.core.drafter_hears());  // that it is to forget the request
  BOOST_TEST((run.step().taps == tap_use::none));
  BOOST_TEST(!run.core.drafter_hears());
}

BOOST_AUTO_TEST_CASE(with_penalties_are_heard_of_from_their_first_row_on) {
  draft_policy policy(3, 4);
  generation_request ask = asked(4);
  ask.sampling.presence_penalty = 0.5F;
  single_run run(ask, &policy);
  for (std::uint32_t i = 0; i < 1 + draft_policy::trial_steps; ++i) {
    BOOST_TEST((run.step().taps == tap_use::none));
    BOOST_TEST(run.core.drafter_hears());
    BOOST_TEST(run.table.sampling.size() == (i == 0 ? 1U : 0U));
  }
  BOOST_TEST((run.step().taps == tap_use::window));
  BOOST_TEST(run.table.sampling.empty());
}

BOOST_AUTO_TEST_SUITE_END()
