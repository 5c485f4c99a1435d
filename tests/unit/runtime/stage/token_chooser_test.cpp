// Goal: what the head remembers is a function of the step tables: options of the requests that
// began, tokens up to the row, nothing of rows that were taken back or of requests that are over.
// Method: tables by hand; choices that show which tokens were counted.
#include "runtime/stage/token_chooser.hpp"

#include <boost/test/unit_test.hpp>
#include <random>
#include <set>

using namespace cedar;
using stage::token_chooser;
using stage::token_history;

namespace {

constexpr request_id one{1}, two{2};
constexpr std::uint32_t vocabulary = 8;
constexpr token_id end = 5;

flow::row_span span_of(request_id request, std::uint32_t first, std::uint32_t rows) {
  return {request, first, rows, rows - 1, 0};
}

flow::step_table table_of(std::vector<flow::row_span> spans, std::vector<token_id> tokens) {
  flow::step_table out;
  out.step = step_id{5};
  out.spans = std::move(spans);
  out.tokens = std::move(tokens);
  return out;
}

/// One request, its tokens from position `first` on.
flow::step_table table_of(request_id request, std::uint32_t first, std::vector<token_id> tokens) {
  const auto rows = static_cast<std::uint32_t>(tokens.size());
  return table_of({span_of(request, first, rows)}, std::move(tokens));
}

/// Token 7 loses 1 for each time that it stands in the answer.
flow::request_sampling counting(request_id request, std::uint32_t prompt_tokens) {
  flow::request_sampling out{request, prompt_tokens, {}};
  out.options.frequency_penalty = 1;
  return out;
}

void run(token_chooser& chooser, const flow::step_table& table) {
  const auto begun = chooser.begin(table, vocabulary);
  BOOST_REQUIRE_MESSAGE(begun, (begun ? "" : begun.error().message));
  auto token = table.tokens.begin();
  for (const flow::row_span& span : table.spans)
    for (std::uint32_t i = 0; i < span.rows_count; ++i) chooser.add_row(span.request, *token++);
}

/// How often token 7 is counted in the answer of a request with `counting` options.
int counted(token_chooser& chooser, request_id request) {
  int out = 0;
  for (;; ++out) {
    std::vector<float> logits(vocabulary, -100.0F);
    logits[7] = 0;
    logits[0] = -static_cast<float>(out) - 0.5F;
    if (chooser.choose(request, 0, logits) == 7) return out;
  }
}

std::string refusal(token_chooser& chooser, const flow::step_table& table) {
  const auto begun = chooser.begin(table, vocabulary);
  BOOST_REQUIRE(!begun);
  BOOST_TEST((begun.error().code == errc::malformed));
  return begun.error().message;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(token_chooser_and_history)

BOOST_AUTO_TEST_CASE(requests_without_options_get_the_arg_max_and_are_not_remembered) {
  token_chooser chooser({end});
  run(chooser, table_of(one, 0, {1, 2, 3}));
  BOOST_TEST(chooser.requests() == 0U);
  BOOST_TEST(chooser.choose(one, 2, std::vector<float>{0, 3, 1, 3, 0, 0, 0, 0}) == 1);
}

BOOST_AUTO_TEST_CASE(tokens_of_the_answer_are_counted_row_by_row) {
  token_chooser chooser({end});
  flow::step_table first = table_of(one, 0, {7, 7, 1});
  first.sampling = {counting(one, 3)};
  run(chooser, first);
  BOOST_TEST(counted(chooser, one) == 0);
  run(chooser, table_of(one, 3, {7}));
  BOOST_TEST(counted(chooser, one) == 1);
  BOOST_REQUIRE(chooser.begin(table_of(one, 4, {7, 1, 7}), vocabulary));
  for (const auto& [token, count] : {std::pair{7, 2}, {1, 2}, {7, 3}}) {
    chooser.add_row(one, token);
    BOOST_TEST(counted(chooser, one) == count);
  }
}

BOOST_AUTO_TEST_CASE(a_span_that_begins_earlier_cuts_back) {
  token_chooser chooser({end});
  flow::step_table first = table_of(one, 0, {1, 7, 7, 7, 7});
  first.sampling = {counting(one, 1)};
  run(chooser, first);
  BOOST_TEST(counted(chooser, one) == 4);
  run(chooser, table_of(one, 3, {2}));  // two drafts were rejected
  BOOST_TEST(counted(chooser, one) == 2);
  run(chooser, table_of(one, 3, {2}));  // the same step again
  BOOST_TEST(counted(chooser, one) == 2);
  run(chooser, first);  // from the start
  BOOST_TEST(counted(chooser, one) == 4);
}

BOOST_AUTO_TEST_CASE(a_request_that_begins_again_has_the_options_of_the_new_beginning) {
  token_chooser chooser({end});
  flow::step_table first = table_of(one, 0, {1, 7, 7});
  first.sampling = {counting(one, 1)};
  run(chooser, first);
  run(chooser, table_of(one, 0, {1, 7, 7}));
  BOOST_TEST(chooser.requests() == 0U);
  BOOST_TEST(counted(chooser, one) == 0);
}

BOOST_AUTO_TEST_CASE(requests_of_one_step_have_their_own_options_and_tokens) {
  token_chooser chooser({end});
  flow::step_table first = table_of({span_of(one, 0, 2), span_of(two, 0, 3)}, {1, 7, 7, 7, 1});
  first.sampling = {counting(two, 0), counting(one, 1)};
  run(chooser, first);
  BOOST_TEST(counted(chooser, one) == 1);
  BOOST_TEST(counted(chooser, two) == 2);
  chooser.forget(two);
  BOOST_TEST(chooser.requests() == 1U);
  BOOST_TEST(counted(chooser, one) == 1);
  BOOST_TEST(counted(chooser, two) == 0);
  run(chooser, table_of(two, 3, {1}));  // a late step of a request that is over
  BOOST_TEST(chooser.requests() == 1U);
  chooser.clear();
  BOOST_TEST(chooser.requests() == 0U);
}

BOOST_AUTO_TEST_CASE(the_noise_is_that_of_the_position_after_the_row) {
  token_chooser chooser({end});
  flow::step_table first = table_of(one, 0, {1});
  first.sampling = {{one, 1, {}}};
  first.sampling[0].options.temperature = 1;
  first.sampling[0].options.seed = 9;
  run(chooser, first);
  const std::vector<float> logits(vocabulary, 0.0F);
  model::sampling_scratch scratch;
  for (std::uint32_t position = 0; position < 50; ++position)
    BOOST_TEST(chooser.choose(one, position, logits) ==
               model::choose_token(logits, first.sampling[0].options, {}, position + 1, scratch));
}

BOOST_AUTO_TEST_CASE(an_answer_does_not_end_before_its_least_tokens) {
  std::vector<float> logits(vocabulary, 0.0F);
  constexpr token_id other_end = 3;
  logits[end] = 9;
  logits[other_end] = 8;
  logits[6] = 1;
  for (const float temperature : {0.0F, 1.0F}) {
    token_chooser chooser({end, other_end});
    flow::step_table first = table_of(one, 0, {1, 2, 3});
    first.sampling = {{one, 3, {}}};
    first.sampling[0].options.temperature = temperature;
    first.sampling[0].options.tokens_min = 40;
    run(chooser, first);
    // The row at position 2 chooses the first token of the answer, that at 41 the fortieth.
    std::set<token_id> chosen;
    for (std::uint32_t position = 2; position < 42; ++position)
      chosen.insert(chooser.choose(one, position, logits));
    BOOST_TEST(!chosen.contains(end));
    BOOST_TEST(!chosen.contains(other_end));
    BOOST_TEST((chosen.size() > 1) == (temperature > 0));
    int ended = 0;
    for (std::uint32_t position = 42; position < 82; ++position)
      ended += chooser.choose(one, position, logits) == end ? 1 : 0;
    BOOST_TEST(ended > 15);
  }
}

BOOST_AUTO_TEST_CASE(tables_that_make_no_sense_are_malformed_and_change_nothing) {
  token_chooser chooser({end});
  flow::step_table first = table_of(one, 0, {1, 7, 7});
  first.sampling = {counting(one, 1)};
  run(chooser, first);

  flow::step_table wrong = table_of(one, 3, {7});
  wrong.sampling = {counting(one, 1)};
  BOOST_TEST(refusal(chooser, wrong) ==
             "step 5: request 1 has sampling options but does not begin here");
  wrong = table_of(two, 0, {7});
  wrong.sampling = {counting(two, 1), counting(two, 1)};
  BOOST_TEST(refusal(chooser, wrong) ==
             "step 5: request 2 has sampling options but does not begin here");
  wrong.sampling.pop_back();
  wrong.sampling[0].options.temperature = -1;
  BOOST_TEST(refusal(chooser, wrong)
                 .starts_with("step 5: request 2 has bad sampling options: temperature is -1"));
  BOOST_TEST(refusal(chooser, table_of(one, 4, {7})) ==
             "step 5: request 1 goes on at position 4, its tokens are known up to 3");
  for (const token_id token : {-1, 8})
    BOOST_TEST(refusal(chooser, table_of(one, 1, {token})) ==
               "step 5: token " + std::to_string(token) + " is outside the vocabulary of 8");

  BOOST_TEST(chooser.requests() == 1U);
  BOOST_TEST(counted(chooser, one) == 2);
}

BOOST_AUTO_TEST_CASE(a_history_counts_what_stands_after_any_pushes_and_cuts) {
  std::mt19937_64 random(3);
  for (int run = 0; run < 50; ++run) {
    const auto prompt = static_cast<std::uint32_t>(random() % 20);
    token_history history(prompt);
    std::vector<token_id> expected;
    for (int i = 0; i < 200; ++i) {
      if (random() % 5 == 0) {
        const std::size_t size = random() % (expected.size() + 2);
        history.truncate(static_cast<std::uint32_t>(size));
        if (size < expected.size()) expected.resize(size);
      } else {
        expected.push_back(static_cast<token_id>(random() % 5));
        history.push(expected.back());
      }
      model::token_uses uses;
      for (std::size_t at = 0; at < expected.size(); ++at) {
        ++uses[expected[at]].total;
        if (at >= prompt) ++uses[expected[at]].answer;
      }
      BOOST_REQUIRE_EQUAL(history.size(), expected.size());
      BOOST_REQUIRE_EQUAL(history.uses().size(), uses.size());
      for (const auto& [token, use] : uses) {
        BOOST_REQUIRE_EQUAL(history.uses().at(token).total, use.total);
        BOOST_REQUIRE_EQUAL(history.uses().at(token).answer, use.answer);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
