// Goal: what does not fit the drafter's state is refused by name and changes nothing. Method:
// steps, verdicts and orders with one mistake each; the drafts afterwards are those without them.
#include <boost/test/unit_test.hpp>

#include "runtime/stage/sequence_state.hpp"
#include "tests/unit/runtime/stage/drafter_run.hpp"

using namespace cedar;
using namespace cedar::test;

namespace {

constexpr request_id one{1};

void expect_error(const error& found, errc code, const std::string& part) {
  BOOST_TEST((found.code == code));
  BOOST_TEST_CONTEXT(found.message) {
    BOOST_TEST(found.message.find(part) != std::string::npos);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(drafter_refusals)

BOOST_AUTO_TEST_CASE(refuses_to_take_back_what_its_rings_have_lost) {
  const auto taps = random_taps(11, 60);
  const std::uint32_t slack = stage::ring_slack(tiny_model().config());
  drafter_run with;
  with.extend(taps, 0, 50);
  const auto refused = with.try_settle(50 - slack - 1);
  BOOST_REQUIRE(!refused);
  expect_error(refused.error(), errc::mismatch, "request 1");
  BOOST_TEST((with.draft(50) == draft_alone(taps, 50)));
  with.settle(50 - slack);
  BOOST_TEST((with.draft(50 - slack) == draft_alone(taps, 50 - slack)));
  // What was lost stays lost, though the newest row is another now.
  with.extend(taps, 50 - slack, 1);
  BOOST_TEST(!with.try_settle(50 - slack - 1));
}

BOOST_AUTO_TEST_CASE(refuses_a_verdict_that_overtook_its_rows) {
  const auto taps = random_taps(15, 30);
  drafter_run with;
  with.extend(taps, 0, 20);
  const auto refused = with.drafter->apply({step_id{2}, {}, {{one, 21, false}}});
  BOOST_REQUIRE(!refused);
  expect_error(refused.error(), errc::mismatch, "before the rows");
  with.extend(taps, 20, 5);
  with.settle(21);
  BOOST_TEST((with.draft(21) == draft_alone(taps, 21)));
}

BOOST_AUTO_TEST_CASE(refuses_rows_that_do_not_fit_and_changes_nothing) {
  const auto taps = random_taps(13, 40);
  drafter_run with(cpu_backend(), 2);
  with.extend(taps, 0, 20);
  const auto refused = [&](const std::vector<flow::row_span>& spans, std::size_t rows,
                           std::size_t cols) {
    const auto done = with.try_extend(spans, {taps.data(), rows, cols});
    BOOST_REQUIRE(!done);
    BOOST_TEST((with.draft(20) == draft_alone(taps, 20)));
    BOOST_TEST(with.drafter->sequences() == 1U);
    return done.error();
  };
  const std::size_t width = taps.cols();
  const request_id two{2};
  expect_error(refused({{one, 20, 3, 3}}, 2, width), errc::malformed, "taps are [2, 384]");
  expect_error(refused({{one, 20, 3, 3}}, 3, width - 1), errc::malformed, "taps are [3, 383]");
  expect_error(refused({{one, 21, 1, 1}}, 1, width), errc::mismatch, "goes on at position 21");
  expect_error(refused({{one, 19, 1, 1}}, 1, width), errc::mismatch, "expects 20");
  expect_error(refused({{two, 4, 1, 1}}, 1, width), errc::mismatch, "begins at position 4");
  expect_error(refused({{two, 0, 1, 1}, {two, 1, 1, 1}}, 2, width), errc::malformed, "two spans");
  expect_error(refused({{two, 0, 1, 1}, {request_id{3}, 0, 1, 1}}, 2, width), errc::capacity,
               "limits.requests");
}

BOOST_AUTO_TEST_CASE(refuses_orders_that_do_not_fit) {
  const auto taps = random_taps(14, 20);
  drafter_run with;
  with.extend(taps, 0, 20);
  const auto refused = [&](const flow::draft_order& order) {
    const std::vector<flow::draft_order> orders{{one, 5, 20, 1}, order};
    std::size_t chosen = 0;
    const auto made = with.drafter->run(orders, [&](std::size_t, std::uint32_t, auto) {
      ++chosen;
      return token_id{0};
    });
    BOOST_REQUIRE(!made);
    BOOST_TEST(chosen == 0U);
    return made.error();
  };
  expect_error(refused({request_id{9}, 5, 20, 1}), errc::mismatch, "request 9 is unknown");
  expect_error(refused({one, 5, 19, 1}), errc::mismatch, "known up to position 20");
  const auto vocabulary = static_cast<token_id>(tiny_model().config().vocabulary);
  expect_error(refused({one, vocabulary, 20, 1}), errc::invalid_argument, "outside the vocabulary");
  expect_error(refused({one, -1, 20, 1}), errc::invalid_argument, "outside the vocabulary");
  BOOST_TEST(with.drafts({}).empty());
}

BOOST_AUTO_TEST_SUITE_END()
