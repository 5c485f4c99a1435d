// Goal: a draft is a function of the request's rows and its newest token: not of the steps in which
// rows came, of rows that were taken back, of other requests, of threads. Method: random taps over
// tiny-12's drafter on the cpu backend; drafts are compared bit by bit, logits included.
#include "runtime/stage/drafter_stage.hpp"

#include <tbb/global_control.h>

#include <algorithm>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <random>

#include "kernels/cpu/cpu_backend.hpp"
#include "runtime/stage/sequence_state.hpp"
#include "runtime/stage/weight_loader.hpp"
#include "tests/unit/runtime/stage/drafter_run.hpp"

using namespace cedar;
using namespace cedar::test;
using kernels::bf16;
using kernels::matrix_buffer;

namespace {

constexpr request_id one{1};

const model::model_config& config() {
  return tiny_model().config();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(drafter)

BOOST_AUTO_TEST_CASE(proposes_a_whole_block_and_changes_nothing) {
  const auto taps = random_taps(1, 40);
  drafter_run with;
  with.extend(taps, 0, 30);
  const drafted first = with.draft(30);
  BOOST_TEST(first.tokens.size() == config().dspark.block_size);
  BOOST_TEST((with.draft(30) == first));
  with.extend(taps, 30, 10);
  BOOST_TEST((with.draft(40) == draft_alone(taps, 40)));
  BOOST_TEST((with.draft(40) != first));
}

BOOST_AUTO_TEST_CASE(gives_the_bits_of_one_chunk_for_any_chunks) {
  const auto taps = random_taps(2, 50);
  const drafted whole = draft_alone(taps, 50);
  // The window has 16 rows, the ring 22: below, at and above both.
  for (const std::uint32_t chunk : {1U, 3U, 15U, 16U, 17U, 21U, 22U, 23U, 49U}) {
    drafter_run with;
    for (std::uint32_t first = 0; first < 50; first += chunk)
      with.extend(taps, first, std::min(chunk, 50 - first));
    BOOST_TEST((with.draft(50) == whole), "chunks of " << chunk);
  }
}

BOOST_AUTO_TEST_CASE(sees_the_window_and_nothing_before_it) {
  const std::uint32_t window = config().window;
  const auto taps = random_taps(3, 60);
  const auto others = random_taps(4, 60);
  const auto with_other_row = [&](std::uint32_t row) {
    matrix_buffer<bf16> changed(60, taps.cols());
    std::ranges::copy(taps.span(), changed.data());
    std::ranges::copy(others.view().row(row), changed.view().row_data(row));
    return draft_alone(changed, 60);
  };
  const drafted original = draft_alone(taps, 60);
  BOOST_TEST((with_other_row(60 - window - 1) == original));
  BOOST_TEST((with_other_row(60 - window) != original));
  BOOST_TEST((with_other_row(59) != original));
}

// Rows of a block see each other in both directions.
BOOST_AUTO_TEST_CASE(has_no_causal_mask_inside_a_block) {
  const auto taps = random_taps(5, 20);
  const auto logits_of = [&](const model::model_config& used, token_id newest) {
    auto weights = stage::load_drafter(tiny_model().checkpoint(), config());
    BOOST_REQUIRE(weights);
    stage::drafter_stage drafter(cpu_backend(), used, std::move(*weights), 1);
    const std::vector<flow::row_span> spans{{one, 0, 20, 20}};
    BOOST_REQUIRE(drafter.extend(step_id{1}, spans, taps.view()));
    std::vector<std::vector<float>> rows;
    const std::vector<flow::draft_order> orders{{one, newest, 20, 1}};
    // A fixed chain: rows differ by what they attend to alone.
    BOOST_REQUIRE(drafter.run(orders, [&](std::size_t, std::uint32_t, auto logits) {
      rows.emplace_back(logits.begin(), logits.end());
      return token_id{3};
    }));
    return rows;
  };
  model::model_config other_noise = config();
  other_noise.dspark.noise_token = 11;
  const auto original = logits_of(config(), 7);
  BOOST_TEST(!same(logits_of(other_noise, 7).front(), original.front()));
  BOOST_TEST(!same(logits_of(config(), 8).back(), original.back()));
}

BOOST_AUTO_TEST_CASE(forgets_rows_that_are_taken_back) {
  const std::uint32_t slack = stage::ring_slack(config());
  for (std::uint32_t wrong = 1; wrong <= slack; ++wrong)
    for (const std::uint32_t cut : {1U, 5U, 15U, 16U, 17U, 21U, 22U, 23U, 40U}) {
      const auto taps = random_taps(6, 60);
      auto drafted_rows = random_taps(cut * 10 + wrong, 60);
      std::copy_n(taps.data(), cut * taps.cols(), drafted_rows.data());
      drafter_run with;
      with.extend(taps, 0, cut - 1);
      with.extend(drafted_rows, cut - 1, 1 + wrong);
      BOOST_TEST((with.draft(cut + wrong) == draft_alone(drafted_rows, cut + wrong)));
      with.settle(cut);
      BOOST_TEST((with.draft(cut) == draft_alone(taps, cut)), wrong << " rows back to " << cut);
      with.extend(taps, cut, 60 - cut);
      BOOST_TEST((with.draft(60) == draft_alone(taps, 60)), wrong << " rows back to " << cut);
    }
}

BOOST_DATA_TEST_CASE(keeps_the_bits_along_an_answer_of_drafts, boost::unit_test::data::xrange(1, 4),
                     seed) {
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  const std::uint32_t block = config().dspark.block_size;
  const auto taps = random_taps(random(), 100);
  drafter_run with;
  std::uint32_t known = 20;
  with.extend(taps, 0, known);
  while (known + block + 1 <= 100) {
    const auto accepted = 1 + static_cast<std::uint32_t>(random() % (block + 1));
    auto verified = random_taps(random(), 100);
    std::copy_n(taps.data(), (known + accepted) * taps.cols(), verified.data());
    with.extend(verified, known, block + 1);
    known += accepted;
    with.settle(known);
    BOOST_REQUIRE((with.draft(known) == draft_alone(taps, known)));
  }
}

BOOST_AUTO_TEST_CASE(keeps_what_a_later_step_wrote_when_a_verdict_is_late) {
  const auto taps = random_taps(8, 30);
  drafter_run with;
  with.extend(taps, 0, 20);
  with.extend(taps, 20, 10);
  BOOST_REQUIRE(with.drafter->apply({step_id{1}, {}, {{one, 20, false}}}));
  BOOST_TEST((with.draft(30) == draft_alone(taps, 30)));
}

BOOST_AUTO_TEST_CASE(gives_each_request_the_bits_that_it_gets_alone) {
  const std::vector<std::uint32_t> lengths{3, 40, 16, 23};
  std::vector<matrix_buffer<bf16>> taps;
  std::vector<drafted> alone;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    taps.push_back(random_taps(20 + i, lengths[i]));
    alone.push_back(draft_alone(taps[i], lengths[i], static_cast<token_id>(30 + i)));
  }
  const tbb::global_control enough(tbb::global_control::max_allowed_parallelism, 8);
  const auto divided = kernels::make_cpu_backend(3, 1);
  const std::vector<const kernels::backend*> backends{&cpu_backend(), divided.get()};
  for (const kernels::backend* backend : backends) {
    drafter_run with(*backend);
    std::vector<flow::row_span> spans;
    std::vector<flow::draft_order> orders;
    std::vector<bf16> rows;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      spans.push_back({request_id{i}, 0, lengths[i], 0});
      orders.push_back({request_id{i}, static_cast<token_id>(30 + i), lengths[i], 1});
      const auto tapped =
          taps[i].span().last(stage::tapped_rows(spans.back(), config()) * taps[i].cols());
      rows.insert(rows.end(), tapped.begin(), tapped.end());
    }
    const std::size_t width = with.drafter->tap_width();
    BOOST_REQUIRE(with.try_extend(spans, {rows.data(), rows.size() / width, width}));
    auto together = with.drafts(orders);
    BOOST_TEST((together == alone));
    std::ranges::reverse(orders);
    together = with.drafts(orders);
    std::ranges::reverse(together);
    BOOST_TEST((together == alone));
  }
}

// Mode bounded: rows begin where they enter the decoder, inside a chunk.
BOOST_AUTO_TEST_CASE(begins_with_the_rows_that_walk_the_decoder) {
  const auto taps = random_taps(9, 60);
  drafter_run with;
  flow::row_span span{one, 0, 10, 10, 14};
  BOOST_REQUIRE(with.try_extend({span}, {taps.data(), 0, taps.cols()}));
  BOOST_TEST(with.drafter->sequences() == 0U);
  span = {one, 10, 10, 10, 14};
  BOOST_REQUIRE(with.try_extend({span}, taps.view().rows_from(14, 6)));
  const drafted few = with.draft(20);
  BOOST_TEST((few != draft_alone(taps, 20)));
  span = {one, 20, 40, 40, 14};
  BOOST_TEST(stage::tapped_rows(span, config()) == 22U);
  BOOST_REQUIRE(with.try_extend({span}, taps.view().rows_from(38, 22)));
  // More than a window later nothing is left of the beginning.
  BOOST_TEST((with.draft(60) == draft_alone(taps, 60)));
}

BOOST_AUTO_TEST_CASE(begins_anew_with_a_window_whatever_it_knew) {
  const std::uint32_t window = config().window;
  const auto taps = random_taps(12, 70);
  const auto others = random_taps(13, 70);
  for (const std::uint32_t end : {1U, window - 1, window, window + 1, 50U})
    for (const std::uint32_t known : {0U, 9U, 40U}) {
      drafter_run with;
      if (known > 0) with.extend(others, 0, known);
      // The step itself has the last row only.
      flow::row_span span{one, end - 1, 1, 0};
      span.taps = flow::tap_use::window;
      const std::uint32_t tapped = std::min(end, window);
      BOOST_TEST(stage::tapped_rows(span, config()) == tapped);
      BOOST_REQUIRE(with.try_extend({span}, taps.view().rows_from(end - tapped, tapped)));
      with.settle(end);
      BOOST_TEST((with.draft(end) == draft_alone(taps, end)), end << " rows, " << known);
      // Drafts that are rejected reach back no further than what came.
      auto drafted_rows = random_taps(14, 70);
      std::copy_n(taps.data(), (end + 1) * taps.cols(), drafted_rows.data());
      with.extend(drafted_rows, end, 1 + config().dspark.block_size);
      with.settle(end + 1);
      BOOST_TEST((with.draft(end + 1) == draft_alone(taps, end + 1)), end << " rows, " << known);
    }
}

BOOST_AUTO_TEST_CASE(forgets_a_request_that_it_no_longer_follows) {
  const auto taps = random_taps(15, 40);
  drafter_run with(cpu_backend(), 1);
  with.extend(taps, 0, 20);
  flow::row_span span{one, 20, 5, 5};
  span.taps = flow::tap_use::none;
  // Its place is another's.
  const flow::row_span other{request_id{2}, 0, 7, 7};
  BOOST_REQUIRE(with.try_extend({other, span}, taps.view().rows_from(0, 7)));
  BOOST_TEST(with.drafter->sequences() == 1U);
  BOOST_TEST(!with.drafter->knows(one));
  const auto refused = with.try_extend({{one, 25, 1, 1}}, taps.view().rows_from(25, 1));
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::mismatch));
}

BOOST_AUTO_TEST_CASE(begins_anew_when_all_rows_are_taken_back) {
  const auto taps = random_taps(10, 40);
  drafter_run with;
  with.extend(taps, 0, 40);
  with.settle(0);
  BOOST_TEST(with.drafter->sequences() == 0U);
  with.extend(taps, 0, 30);
  BOOST_TEST((with.draft(30) == draft_alone(taps, 30)));
}

BOOST_AUTO_TEST_CASE(frees_requests_that_are_over) {
  const auto taps = random_taps(12, 10);
  drafter_run with;
  with.extend(taps, 0, 10);
  BOOST_REQUIRE(with.drafter->apply({step_id{1}, {}, {{request_id{5}, 3, true}, {one, 10, true}}}));
  BOOST_TEST(with.drafter->sequences() == 0U);
  with.extend(taps, 0, 10);
  with.drafter->clear();
  BOOST_TEST(with.drafter->sequences() == 0U);
}

BOOST_AUTO_TEST_CASE(has_a_confidence_between_nothing_and_one) {
  BOOST_TEST(model::confidence_of(0) == 0.5F);
  BOOST_TEST(model::confidence_of(1) == 0.7310586F, boost::test_tools::tolerance(1e-6F));
  BOOST_TEST(model::confidence_of(-1) == 0.26894143F, boost::test_tools::tolerance(1e-6F));
  BOOST_TEST(model::confidence_of(1e30F) == 1.0F);
  BOOST_TEST(model::confidence_of(-1e30F) == 0.0F);
}

BOOST_AUTO_TEST_SUITE_END()
