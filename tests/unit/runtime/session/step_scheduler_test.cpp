// Goal: what a request may ask, how it ends, and what a wrong answer does. Method: small runs by
// hand over a fake pipeline (fake_pipeline.hpp).
#include "runtime/session/step_scheduler.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/base/check.hpp"
#include "runtime/session/halo.hpp"
#include "tests/unit/runtime/session/fake_pipeline.hpp"

using namespace cedar;
using namespace cedar::session;
using test::fake_pipeline;

namespace {

scheduler_limits limits_of(std::uint32_t context_max = 20) {
  return {.rows_per_step = 4,
          .requests_max = 2,
          .queue_max = 3,
          .context_max = context_max,
          .steps_in_flight = 2,
          .vocabulary = 50,
          .lookback = 3,
          .eos_tokens = {1},
          .window = 3};
}

generation_request prompt_of(std::vector<token_id> ids, std::uint32_t new_tokens_max = 1) {
  generation_request out;
  out.prompt = std::move(ids);
  out.new_tokens_max = new_tokens_max;
  return out;
}

/// Answers every wanted row of the table with `token`.
flow::proposal all(token_id token, const flow::step_table& table) {
  flow::proposal out{table.step, table.epoch, {}, {}};
  for (const flow::row_span& span : table.spans)
    for (std::uint32_t i = span.logits_from; i < span.rows_count; ++i)
      out.tokens.push_back({span.request, span.first_position + i, token, 0});
  return out;
}

/// Runs everything to its end, answering every row with `token`; returns the last event.
row_event finish(step_scheduler& core, token_id token) {
  row_event last;
  while (const auto table = core.next_step()) {
    const auto outcome = core.accept(all(token, *table));
    BOOST_REQUIRE(outcome);
    if (!outcome->events.empty()) last = outcome->events.back();
  }
  return last;
}

errc submit_error(step_scheduler& core, const std::vector<generation_request>& asks,
                  const std::string& text) {
  const auto ids = core.submit(asks);
  BOOST_REQUIRE(!ids);
  BOOST_TEST(ids.error().message.find(text) != std::string::npos, ids.error().message);
  return ids.error().code;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(step_scheduler_unit)

BOOST_AUTO_TEST_CASE(a_batch_with_one_bad_request_is_refused_whole_and_by_name) {
  step_scheduler core(limits_of());
  const auto good = prompt_of({3, 4});
  auto forced_outside = good;
  forced_outside.forced = {50};
  auto too_long = good;
  too_long.forced.assign(19, 5);
  BOOST_TEST((submit_error(core, {good, prompt_of({})}, "request 2: the prompt is empty") ==
              errc::invalid_argument));
  BOOST_TEST((submit_error(core, {prompt_of({3, 50}), good}, "request 1: token 50") ==
              errc::invalid_argument));
  BOOST_TEST((submit_error(core, {prompt_of({-1})}, "token -1") == errc::invalid_argument));
  BOOST_TEST((submit_error(core, {forced_outside}, "token 50") == errc::invalid_argument));
  BOOST_TEST((submit_error(core, {good, too_long}, "request 2: the prompt has 21 tokens") ==
              errc::capacity));
  BOOST_TEST((submit_error(core, {good, good, good, good}, "waiting") == errc::capacity));
  BOOST_TEST(core.requests() == 0U);
  BOOST_TEST(!core.next_step());
  BOOST_TEST(core.submit({good, good, good}).has_value());
  BOOST_TEST((submit_error(core, {good}, "3 requests are waiting") == errc::capacity));
  BOOST_TEST(core.requests() == 3U);
}

BOOST_AUTO_TEST_CASE(a_prompt_that_fills_the_context_still_gets_one_token) {
  step_scheduler core(limits_of(5));
  BOOST_REQUIRE(core.submit({prompt_of({2, 3, 4, 5, 6}, 9)}));
  const row_event last = finish(core, 7);
  BOOST_TEST(last.position == 4U);
  BOOST_TEST((last.finish == finish_reason::length));
}

BOOST_AUTO_TEST_CASE(the_end_of_the_context_ends_a_request_with_length) {
  step_scheduler core(limits_of(8));
  const auto ids = core.submit({prompt_of({2, 3, 4, 5, 6}, 9)});
  BOOST_REQUIRE(ids);
  const row_event last = finish(core, 7);
  BOOST_TEST(last.position == 7U);  // the token would stand at position 8, beyond the context
  BOOST_TEST((last.finish == finish_reason::length));
  BOOST_TEST(core.usage_of(ids->front())->completion_tokens == 4U);
}

BOOST_AUTO_TEST_CASE(the_end_of_sequence_stops_unless_it_is_ignored) {
  step_scheduler core(limits_of());
  BOOST_REQUIRE(core.submit({prompt_of({2, 3}, 6)}));
  const row_event stopped = finish(core, 1);
  BOOST_TEST(stopped.position == 1U);
  BOOST_TEST((stopped.finish == finish_reason::stop));
  scheduler_limits others = limits_of();
  others.eos_tokens = {9, 1};
  step_scheduler with_two(others);
  BOOST_REQUIRE(with_two.submit({prompt_of({2, 3}, 6)}));
  BOOST_TEST((finish(with_two, 1).finish == finish_reason::stop));
  BOOST_REQUIRE(with_two.submit({prompt_of({2, 3}, 6)}));
  BOOST_TEST((finish(with_two, 9).finish == finish_reason::stop));
  auto going_on = prompt_of({2, 3}, 6);
  going_on.ignore_eos = true;
  BOOST_REQUIRE(core.submit({going_on}));
  const row_event length = finish(core, 1);
  BOOST_TEST(length.position == 6U);
  BOOST_TEST((length.finish == finish_reason::length));
}

BOOST_AUTO_TEST_CASE(forced_ids_are_fed_whatever_the_model_chooses) {
  step_scheduler core(limits_of());
  auto ask = prompt_of({2, 3}, 1);
  ask.forced = {9, 1, 8};  // the end of sequence among them does not end it
  const auto ids = core.submit({ask});
  BOOST_REQUIRE(ids);
  fake_pipeline pipeline(limits_of());
  row_event last;
  while (auto table = core.next_step()) {
    pipeline.take(*table);
    const auto outcome = core.accept(pipeline.answer());
    BOOST_REQUIRE(outcome);
    last = outcome->events.back();
  }
  BOOST_TEST(pipeline.ids(ids->front()) == (std::vector<token_id>{2, 3, 9, 1, 8}),
             boost::test_tools::per_element());
  BOOST_TEST(last.position == 4U);
  BOOST_TEST((last.finish == finish_reason::length));
  BOOST_TEST(core.usage_of(ids->front())->completion_tokens == 3U);
}

BOOST_AUTO_TEST_CASE(a_prompt_alone_is_run_without_new_tokens) {
  step_scheduler core(limits_of());
  const auto ids = core.submit({prompt_of({2, 3, 4, 5, 6}, 0)});
  BOOST_REQUIRE(ids);
  const row_event last = finish(core, 7);
  BOOST_TEST(last.position == 4U);
  BOOST_TEST(core.usage_of(ids->front())->prompt_tokens == 5U);
  BOOST_TEST(core.usage_of(ids->front())->completion_tokens == 0U);
}

BOOST_AUTO_TEST_CASE(sampling_options_travel_with_the_first_rows_of_a_request_and_never_again) {
  step_scheduler core(limits_of());
  auto sampled = prompt_of({2, 3, 4, 5, 6}, 3);
  sampled.sampling.temperature = 0.5F;
  sampled.sampling.bias = {{7, 2.5F}};
  const auto ids = core.submit({sampled, prompt_of({2, 3}, 3)});
  BOOST_REQUIRE(ids);
  const auto first = core.next_step();  // a chunk of the prompt
  BOOST_REQUIRE(first);
  const flow::request_sampling expected{ids->front(), 5, sampled.sampling};
  BOOST_REQUIRE(first->sampling.size() == 1U);
  BOOST_TEST((first->sampling.front() == expected));
  BOOST_REQUIRE(core.accept(all(9, *first)));
  std::size_t steps = 0;
  while (const auto table = core.next_step()) {
    ++steps;
    BOOST_TEST(table->sampling.empty());  // the other request has the defaults
    BOOST_REQUIRE(core.accept(all(9, *table)));
  }
  BOOST_TEST(steps >= 3U);
}

BOOST_AUTO_TEST_CASE(sampling_options_beyond_their_rules_are_refused_with_the_request) {
  step_scheduler core(limits_of());
  auto wrong = prompt_of({2}, 1);
  wrong.sampling.bias = {{50, 1}};
  const auto ids = core.submit({prompt_of({2}, 1), wrong});
  BOOST_REQUIRE(!ids);
  BOOST_TEST((ids.error().code == errc::invalid_argument));
  BOOST_TEST(ids.error().message ==
             "request 2: the logit bias of token 50 is outside the vocabulary of 50");
  BOOST_TEST(core.requests() == 0U);
}

BOOST_AUTO_TEST_CASE(ids_that_stand_for_an_image_are_refused_where_there_are_images) {
  step_scheduler text(limits_of());
  BOOST_TEST(text.submit({prompt_of({2, 9}, 1)}).has_value());
  scheduler_limits limits = limits_of();
  limits.image_token = 9;
  step_scheduler core(limits);
  auto forced = prompt_of({2}, 1);
  forced.forced = {3, 9};
  for (const auto& wrong : {prompt_of({2, 9}, 1), forced}) {
    const auto ids = core.submit({wrong});
    BOOST_REQUIRE(!ids);
    BOOST_TEST((ids.error().code == errc::invalid_argument));
    BOOST_TEST(ids.error().message.find("token 9 stands for an image") != std::string::npos);
  }
  BOOST_TEST(core.submit({prompt_of({2, 8}, 1)}).has_value());
}

BOOST_AUTO_TEST_CASE(prompt_chunks_follow_each_other_without_waiting_and_decode_rows_wait) {
  step_scheduler core(limits_of());
  BOOST_REQUIRE(core.submit({prompt_of({2, 3, 4, 5, 6, 7}, 3)}));
  const auto first = core.next_step();
  const auto second = core.next_step();
  BOOST_REQUIRE((first && second));
  BOOST_TEST(first->spans[0].rows_count == 4U);
  BOOST_TEST(first->logits_count() == 0U);
  BOOST_TEST(second->spans[0].rows_count == 2U);
  BOOST_TEST(second->spans[0].logits_from == 1U);
  BOOST_REQUIRE(core.accept(all(9, *first)));
  BOOST_TEST(!core.next_step());  // its next row needs the answer to the second step
  BOOST_REQUIRE(core.accept(all(9, *second)));
  const auto third = core.next_step();
  BOOST_REQUIRE(third);
  BOOST_TEST(third->tokens == std::vector<token_id>{9}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(more_requests_wait_until_one_is_over) {
  step_scheduler core(limits_of());
  BOOST_REQUIRE(core.submit({prompt_of({2}, 1), prompt_of({3}, 2), prompt_of({4}, 1)}));
  const auto first = core.next_step();
  BOOST_REQUIRE(first);
  BOOST_TEST(first->spans.size() == 2U);
  BOOST_TEST(!core.next_step());
  BOOST_REQUIRE(core.accept(all(9, *first)));
  const auto second = core.next_step();
  BOOST_REQUIRE(second);
  BOOST_TEST(second->tokens == (std::vector<token_id>{9, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_wrong_answer_changes_nothing) {
  step_scheduler core(limits_of());
  auto ask = prompt_of({2, 3, 4}, 2);
  ask.prompt_logits = 2;
  ask.want_logits = true;
  BOOST_REQUIRE(core.submit({ask}));
  const auto table = core.next_step();
  BOOST_REQUIRE(table);
  flow::proposal good = all(7, *table);
  good.logits = flow::freeze(kernels::buffer(2 * 50 * sizeof(float)));
  const auto refused = [&](auto damage) {
    flow::proposal wrong = good;
    damage(wrong);
    const auto outcome = core.accept(wrong);
    return !outcome && outcome.error().code == errc::mismatch;
  };
  BOOST_TEST(refused([](flow::proposal& p) { p.step = step_id{2}; }));
  BOOST_TEST(refused([](flow::proposal& p) { p.epoch = epoch_id{1}; }));
  BOOST_TEST(refused([](flow::proposal& p) { p.tokens.pop_back(); }));
  BOOST_TEST(refused([](flow::proposal& p) { p.tokens.push_back(p.tokens.back()); }));
  BOOST_TEST(refused([](flow::proposal& p) { p.tokens[0].request = request_id{2}; }));
  BOOST_TEST(refused([](flow::proposal& p) { p.tokens[1].position = 1; }));
  BOOST_TEST(refused([](flow::proposal& p) { std::swap(p.tokens[0], p.tokens[1]); }));
  BOOST_TEST(refused([](flow::proposal& p) { p.tokens[0].token = 50; }));
  BOOST_TEST(refused([](flow::proposal& p) { p.tokens[0].token = -1; }));
  BOOST_TEST(refused([](flow::proposal& p) { p.logits = nullptr; }));
  BOOST_TEST(refused([](flow::proposal& p) {
    p.logits = flow::freeze(kernels::buffer(2 * 50 * sizeof(float) - 1));
  }));
  BOOST_TEST((core.oldest_step() == step_id{1}));
  const auto outcome = core.accept(good);
  BOOST_REQUIRE(outcome);
  BOOST_TEST(outcome->events.size() == 2U);
  BOOST_TEST(!core.accept(good).has_value());  // nothing is in flight any more
  const auto next = core.next_step();
  BOOST_REQUIRE(next);
  BOOST_TEST(next->tokens == std::vector<token_id>{7}, boost::test_tools::per_element());
  BOOST_TEST(next->spans[0].first_position == 3U);
}

BOOST_AUTO_TEST_CASE(answers_out_of_order_are_refused) {
  step_scheduler core(limits_of());
  BOOST_REQUIRE(core.submit({prompt_of({2, 3, 4, 5, 6, 7}, 1)}));
  const auto first = core.next_step();
  const auto second = core.next_step();
  BOOST_REQUIRE((first && second));
  BOOST_TEST(!core.accept(all(9, *second)).has_value());
  BOOST_TEST(core.accept(all(9, *first)).has_value());
  BOOST_TEST(core.accept(all(9, *second)).has_value());
}

BOOST_AUTO_TEST_CASE(giving_everything_up_voids_late_answers) {
  step_scheduler core(limits_of());
  const auto ids = core.submit({prompt_of({2}, 4), prompt_of({3}, 4), prompt_of({4}, 4)});
  BOOST_REQUIRE(ids);
  const auto table = core.next_step();
  BOOST_REQUIRE(table);
  auto failed = core.fail_all();
  std::ranges::sort(failed);
  BOOST_TEST((failed == *ids));
  core.begin_epoch(epoch_id{3});
  BOOST_TEST(core.epoch().value == 3U);
  BOOST_CHECK_THROW(core.begin_epoch(epoch_id{2}), defect);
  BOOST_TEST(core.requests() == 0U);
  BOOST_TEST(core.steps_in_flight() == 0U);
  BOOST_TEST(!core.oldest_step());
  BOOST_TEST(!core.next_step());
  BOOST_TEST(!core.accept(all(9, *table)).has_value());

  const auto again = core.submit({prompt_of({5}, 1)});
  BOOST_REQUIRE(again);
  BOOST_TEST((again->front() > ids->back()));
  const auto next = core.next_step();
  BOOST_REQUIRE(next);
  BOOST_TEST(next->step.value == table->step.value + 1);
  BOOST_TEST(next->epoch.value == 3U);
  BOOST_CHECK_THROW(core.begin_epoch(epoch_id{4}), defect);  // a step is in flight
  flow::proposal late = all(9, *next);
  late.epoch = table->epoch;
  BOOST_TEST(!core.accept(late).has_value());
  BOOST_TEST(core.accept(all(9, *next)).has_value());
}

BOOST_AUTO_TEST_CASE(only_requests_that_the_pipeline_held_state_of_are_lost_with_it) {
  scheduler_limits limits = limits_of();
  limits.requests_max = 3;
  limits.queue_max = 4;
  limits.steps_in_flight = 1;
  step_scheduler core(limits);
  // The first fills the step; the second is admitted and has no row yet; the fourth waits.
  const auto ids = core.submit(
      {prompt_of({2, 3, 4, 5, 6, 7}, 2), prompt_of({3}, 2), prompt_of({4}, 2), prompt_of({5}, 2)});
  BOOST_REQUIRE(ids);
  BOOST_REQUIRE(core.next_step());
  BOOST_TEST(core.load().running == 3U);
  core.cancel(ids->at(2));
  BOOST_TEST((core.fail_active() == std::vector{ids->at(0)}));
  BOOST_TEST(core.load().running == 0U);
  BOOST_TEST(core.load().kv_positions == 0U);
  BOOST_TEST(core.load().waiting == 2U);
  core.begin_epoch(epoch_id{1});
  std::vector<request_id> finished;
  while (const auto table = core.next_step()) {
    BOOST_TEST(table->epoch.value == 1U);
    const auto outcome = core.accept(all(9, *table));
    BOOST_REQUIRE(outcome);
    for (const row_event& event : outcome->events)
      if (event.finish != finish_reason::none) finished.push_back(event.request);
  }
  BOOST_TEST((finished == std::vector{ids->at(1), ids->at(3)}));
}

BOOST_AUTO_TEST_CASE(an_older_request_takes_the_kv_of_a_younger_one_which_is_computed_again) {
  scheduler_limits limits = limits_of(16);
  limits.rows_per_step = 8;
  limits.requests_max = 3;
  limits.kv_granule = 4;
  limits.kv_granules = 4;
  step_scheduler core(limits);
  // The last one has a prompt of one granule, the first will need a second granule at position 4.
  const auto ids = core.submit(
      {prompt_of({2, 3, 4, 5}, 3), prompt_of({6, 7}, 2), prompt_of({8, 9, 10, 11, 12}, 2)});
  BOOST_REQUIRE(ids);
  const auto first = core.next_step();
  BOOST_REQUIRE(first);
  BOOST_TEST(first->tokens == (std::vector<token_id>{2, 3, 4, 5, 6, 7, 8, 9}),
             boost::test_tools::per_element());
  const auto second = core.next_step();
  BOOST_REQUIRE(second);
  BOOST_TEST(second->tokens == (std::vector<token_id>{10, 11, 12}),
             boost::test_tools::per_element());

  // The youngest has rows in flight: it stays, and the next younger one goes, before its answer
  // has a row.
  const auto after_first = core.accept(all(20, *first));
  BOOST_REQUIRE(after_first);
  BOOST_TEST((after_first->verdict.commitments ==
              std::vector<flow::commitment>{
                  {(*ids)[0], 4, false}, {(*ids)[1], 2, true}, {(*ids)[2], 2, false}}));
  BOOST_TEST(after_first->events.size() == 2U);
  BOOST_TEST((after_first->events[1].finish == finish_reason::none));
  BOOST_TEST(core.requests() == 3U);
  const auto third = core.next_step();
  BOOST_REQUIRE(third);
  BOOST_TEST(third->tokens == (std::vector<token_id>{20}), boost::test_tools::per_element());

  const auto after_second = core.accept(all(21, *second));
  BOOST_REQUIRE(after_second);
  const auto fourth = core.next_step();
  BOOST_REQUIRE(fourth);
  BOOST_TEST(fourth->tokens == (std::vector<token_id>{21}), boost::test_tools::per_element());
  BOOST_REQUIRE(core.accept(all(22, *third)));
  const auto after_fourth = core.accept(all(23, *fourth));
  BOOST_REQUIRE(after_fourth);
  BOOST_TEST((after_fourth->events.back().finish == finish_reason::length));

  // Prompt and accepted token in one chunk, with an event only for the row that has had none.
  const auto fifth = core.next_step();
  BOOST_REQUIRE(fifth);
  BOOST_TEST(fifth->tokens == (std::vector<token_id>{22, 6, 7, 20}),
             boost::test_tools::per_element());
  BOOST_TEST((fifth->spans[1] == flow::row_span{(*ids)[1], 0, 3, 2, 0}));
  const auto after_fifth = core.accept(all(24, *fifth));
  BOOST_REQUIRE(after_fifth);
  BOOST_TEST((after_fifth->events.back().finish == finish_reason::length));
  BOOST_TEST(core.requests() == 0U);
  const usage* used = core.usage_of((*ids)[1]);
  BOOST_REQUIRE(used != nullptr);
  BOOST_TEST(used->preemptions == 1U);
  BOOST_TEST(used->completion_tokens == 2U);
  BOOST_TEST(used->encoder_rows == 5U);  // two of them twice
}

BOOST_AUTO_TEST_CASE(a_request_that_kv_could_never_hold_is_refused_with_numbers) {
  scheduler_limits limits = limits_of(16);
  limits.kv_granule = 4;
  limits.kv_granules = 2;
  step_scheduler core(limits);
  BOOST_TEST(
      (submit_error(core, {prompt_of({2, 3, 4}, 7)},
                    "prompt and answer may take 9 positions, the KV of all requests holds 8") ==
       errc::capacity));
  // The last token has no row; nobody else needs KV, so it grows to its end.
  BOOST_REQUIRE(core.submit({prompt_of({2, 3, 4}, 6)}));
  const row_event last = finish(core, 7);
  BOOST_TEST(last.position == 7U);
  BOOST_TEST((last.finish == finish_reason::length));
}

BOOST_AUTO_TEST_CASE(while_an_answer_grows_prompts_get_their_share_of_a_step_only) {
  scheduler_limits limits = limits_of();
  limits.prefill_rows = 1;
  step_scheduler core(limits);
  BOOST_REQUIRE(core.submit({prompt_of({2, 3, 4}, 2)}));
  const auto alone = core.next_step();
  BOOST_REQUIRE(alone);
  BOOST_TEST(alone->rows_count() == 3U);
  BOOST_REQUIRE(core.accept(all(9, *alone)));
  BOOST_REQUIRE(core.submit({prompt_of({5, 6, 7, 8}, 1)}));
  const auto beside = core.next_step();
  BOOST_REQUIRE(beside);
  BOOST_TEST(beside->tokens == (std::vector<token_id>{9, 5}), boost::test_tools::per_element());
  BOOST_REQUIRE(core.accept(all(9, *beside)));
  const auto rest = core.next_step();
  BOOST_REQUIRE(rest);
  BOOST_TEST(rest->tokens == (std::vector<token_id>{6, 7, 8}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(no_more_requests_run_than_a_step_has_rows) {
  scheduler_limits limits = limits_of();
  limits.rows_per_step = 1;
  step_scheduler core(limits);
  BOOST_REQUIRE(core.submit({prompt_of({2}, 3), prompt_of({3}, 1)}));
  std::vector<token_id> fed;
  while (const auto table = core.next_step()) {
    fed.push_back(table->tokens.at(0));
    BOOST_REQUIRE(core.accept(all(9, *table)));
  }
  BOOST_TEST(fed == (std::vector<token_id>{2, 9, 9, 3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(only_the_last_window_of_a_bounded_prompt_walks_the_decoder) {
  step_scheduler core(limits_of());
  auto ask = prompt_of({2, 3, 4, 5, 6, 7}, 2);
  ask.mode = prefill_mode::bounded;
  ask.prompt_logits = 6;
  const auto ids = core.submit({ask});
  BOOST_REQUIRE(ids);
  const auto first = core.next_step();
  const auto second = core.next_step();
  BOOST_REQUIRE((first && second));
  BOOST_TEST(first->spans[0].decoder_begin == 3U);
  BOOST_TEST(first->decoder_count() == 1U);
  BOOST_TEST(first->logits_count() == 1U);  // rows before the boundary have none
  BOOST_TEST(second->decoder_count() == 2U);
  BOOST_REQUIRE(core.accept(all(9, *first)));
  BOOST_REQUIRE(core.accept(all(9, *second)));
  const auto third = core.next_step();
  BOOST_REQUIRE(third);
  BOOST_TEST(third->spans[0].decoder_begin == 3U);
  BOOST_REQUIRE(core.accept(all(9, *third)));
  const usage* used = core.usage_of(ids->front());
  BOOST_REQUIRE(used != nullptr);
  BOOST_TEST((used->mode == prefill_mode::bounded));
  BOOST_TEST(used->encoder_rows == 7U);
  BOOST_TEST(used->decoder_rows == 4U);
}

BOOST_AUTO_TEST_CASE(a_halo_reaches_back_a_window_for_every_decoder_layer) {
  BOOST_TEST(halo_rows(128, 20) == 2541U);  // the published figure of the released model
  BOOST_TEST(halo_rows(128, 1) == 128U);
  BOOST_TEST(halo_rows(1, 20) == 1U);
  auto limits = limits_of();
  limits.decoder_layers = 3;  // 3 + 2 * 2 rows
  for (const auto& [wanted, begin] : {std::pair{1U, 11U}, {2U, 10U}, {18U, 0U}}) {
    step_scheduler core(limits);
    auto ask = prompt_of(std::vector<token_id>(18, 5), 1);
    ask.mode = prefill_mode::halo;
    ask.prompt_logits = wanted;
    BOOST_REQUIRE(core.submit({ask}));
    std::uint32_t rows = 0;
    while (const auto table = core.next_step()) {
      BOOST_TEST(table->spans.front().decoder_begin == begin);
      rows += table->logits_count();
      BOOST_REQUIRE(core.accept(all(7, *table)));
    }
    BOOST_TEST(rows == wanted);
  }
}

BOOST_AUTO_TEST_CASE(a_bounded_prompt_within_the_window_is_an_exact_one) {
  step_scheduler core(limits_of());
  auto ask = prompt_of({2, 3, 4}, 1);
  ask.mode = prefill_mode::bounded;
  ask.prompt_logits = 3;
  BOOST_REQUIRE(core.submit({ask}));
  const auto table = core.next_step();
  BOOST_REQUIRE(table);
  BOOST_TEST(table->spans[0].decoder_begin == 0U);
  BOOST_TEST(table->logits_count() == 3U);
}

BOOST_AUTO_TEST_CASE(reasons_and_modes_have_names) {
  for (const std::string_view name : prefill_mode_names)
    BOOST_TEST(to_string(prefill_mode_of(name).value()) == name);
  BOOST_TEST(to_string(prefill_mode::exact) == "exact");
  BOOST_TEST(to_string(prefill_mode::bounded) == "bounded");
  BOOST_TEST(!prefill_mode_of("all").has_value());

  BOOST_TEST(to_string(finish_reason::none) == "none");
  BOOST_TEST(to_string(finish_reason::stop) == "stop");
  BOOST_TEST(to_string(finish_reason::length) == "length");
}

BOOST_AUTO_TEST_SUITE_END()
