// Goal: the scheduler orders and verifies what its policy says, and tells it what became of it.
// Method: whole answers over a fake pipeline (fake_pipeline.hpp) with a drafter that knows a share
// of the next tokens, in made-up time.
#include <boost/test/unit_test.hpp>
#include <functional>

#include "tests/unit/runtime/session/fake_pipeline.hpp"

using namespace cedar;
using namespace cedar::session;

namespace {

constexpr std::uint32_t block = 4;

scheduler_limits limits_of() {
  return {.rows_per_step = 32,
          .requests_max = 4,
          .queue_max = 4,
          .context_max = 4000,
          .vocabulary = 50,
          .eos_tokens = {1},
          .draft_tokens_max = block};
}

/// Two requests to their end.
class scheduled_run {
 public:
  /// `known`: how many of a draft's tokens are right; its confidences say so.
  scheduled_run(std::function<double(std::uint32_t rows)> seconds, std::uint32_t known)
      : seconds_(std::move(seconds)), known_(known) {
    for (const token_id first : {5, 9}) {
      generation_request ask;
      ask.prompt = {first, 3};
      ask.new_tokens_max = 1500;
      ask.ignore_eos = true;
      BOOST_REQUIRE(core_.submit({ask}));
    }
  }

  void run(std::size_t steps) {
    rows = {};
    ordered = 0;
    for (; steps > 0; --steps) {
      const auto table = core_.next_step();
      BOOST_REQUIRE(table);
      rows.push_back(table->rows_count());
      pipeline_.take(*table);
      const auto outcome = core_.accept(pipeline_.answer());
      BOOST_REQUIRE(outcome);
      pipeline_.apply(outcome->verdict);
      policy.step_took(seconds_(table->rows_count()));
      if (outcome->orders.empty()) continue;
      ++ordered;
      policy.drafts_took(static_cast<std::uint32_t>(outcome->orders.size()), 0.1);
      for (const flow::draft_order& order : outcome->orders)
        BOOST_REQUIRE(core_.offer(draft(order)));
    }
  }

  draft_policy policy{block, limits_of().rows_per_step};
  std::vector<std::uint32_t> rows;  ///< of every step of the last run()
  std::size_t ordered = 0;  ///< steps after which drafts were ordered

 private:
  flow::draft draft(const flow::draft_order& order) {
    flow::draft out{order.request, order.position, {}, {}};
    std::vector<token_id> ids = pipeline_.ids(order.request);
    ids.push_back(order.last);
    for (std::uint32_t i = 0; i < order.tokens_max; ++i) {
      const token_id right = test::choice_after(ids, limits_of().vocabulary);
      ids.push_back(right);
      out.tokens.push_back(i < known_ ? right : (right + 1) % 50);
      out.confidences.push_back(i < known_ ? 0.95F : 0.05F);
    }
    return out;
  }

  std::function<double(std::uint32_t rows)> seconds_;
  std::uint32_t known_;
  step_scheduler core_{limits_of(), &policy};
  test::fake_pipeline pipeline_{limits_of()};
};

double pass_and_rows(std::uint32_t rows) {
  return 1 + 0.1 * rows;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(scheduled_drafts)

BOOST_AUTO_TEST_CASE(are_verified_as_far_as_they_are_likely) {
  scheduled_run both(pass_and_rows, 2);
  both.run(100);
  both.run(20);
  BOOST_TEST(both.ordered == 20U);
  for (const std::uint32_t rows : both.rows) BOOST_TEST(rows == 2U * (1 + 2));
  const std::vector<std::uint64_t>& lengths = both.policy.report().lengths;
  BOOST_TEST(lengths[2] > lengths[0] + lengths[1] + lengths[3] + lengths[4]);
}

BOOST_AUTO_TEST_CASE(are_not_ordered_where_they_do_not_pay) {
  scheduled_run both([](std::uint32_t rows) { return rows; }, block);
  both.run(50);
  both.run(50);
  BOOST_TEST(both.ordered == 0U);
  for (const std::uint32_t rows : both.rows) BOOST_TEST(rows == 2U);
}

BOOST_AUTO_TEST_CASE(are_tried_after_plain_steps) {
  scheduled_run both(pass_and_rows, block);
  // The prompts, plain steps to measure, one that was under way when the policy had seen enough.
  both.run(1 + draft_policy::trial_steps);
  BOOST_TEST(both.ordered == 0U);
  both.run(1);
  BOOST_TEST(both.ordered == 1U);
  both.run(draft_policy::trial_steps);
  BOOST_TEST(both.rows == (std::vector<std::uint32_t>{10, 4, 10, 6, 10}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
