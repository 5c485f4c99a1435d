// Goal: tokens become text without stop strings, and scores of exactly the tokens that the text
// has. Method: the small model's tokenizer, token by token.
#include "runtime/http/answer.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

using namespace cedar;
using namespace cedar::http;

namespace {

const text::tokenizer& vocabulary() {
  static const auto loaded =
      text::tokenizer::load(CEDAR_SOURCE_DIR "/configs/models/cedar-tiny/tokenizer.json");
  return *loaded;
}

std::vector<token_id> ids_of(const std::string& text) {
  return *vocabulary().encode(text, text::control_strings::plain_text);
}

/// All that an answer gives for the tokens of `text`.
answer_delta all_of(answer& made, const std::string& text) {
  answer_delta out;
  const auto add = [&](const answer_delta& more) {
    out.text += more.text;
    out.tokens.insert(out.tokens.end(), more.tokens.begin(), more.tokens.end());
  };
  for (const token_id id : ids_of(text)) {
    add(made.push({id, -0.5F}));
    if (made.stopped()) return out;
  }
  add(made.finish());
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(answer_suite)

BOOST_AUTO_TEST_CASE(gives_the_text_and_a_score_for_each_token) {
  const std::string text = "Once upon a time there was a dög \xF0\x9F\x90\x95.";
  answer made(vocabulary(), {.scored = true});
  const answer_delta all = all_of(made, text);
  BOOST_TEST(all.text == text);
  const std::vector<token_id> ids = ids_of(text);
  BOOST_REQUIRE_EQUAL(all.tokens.size(), ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) BOOST_TEST(all.tokens[i].chosen.token == ids[i]);
  BOOST_TEST(made.tokens() == ids.size());
  BOOST_TEST(all.tokens.front().offset == 0U);
  for (std::size_t i = 1; i < ids.size(); ++i)
    BOOST_TEST(all.tokens[i].offset >= all.tokens[i - 1].offset);
}

BOOST_AUTO_TEST_CASE(ends_at_a_stop_string_over_token_boundaries) {
  const std::string text = "Once upon a time there was a fox.";
  BOOST_REQUIRE(ids_of("ime the").size() > 1);
  answer made(vocabulary(), {.stops = {"ime the"}, .scored = true});
  const answer_delta all = all_of(made, text);
  BOOST_TEST(made.stopped());
  BOOST_TEST(all.text == "Once upon a t");
  BOOST_REQUIRE(!all.tokens.empty());
  BOOST_TEST(all.tokens.back().offset < all.text.size());
  BOOST_TEST(all.tokens.size() < made.tokens());
}

BOOST_AUTO_TEST_CASE(does_not_end_before_its_least_tokens) {
  const std::string text = "a fox and a fox";
  answer at_once(vocabulary(), {.stops = {" fox"}});
  BOOST_TEST(all_of(at_once, text).text == "a");
  const auto before_second = static_cast<std::uint32_t>(ids_of("a fox and").size());
  answer later(vocabulary(), {.stops = {" fox"}, .tokens_min = before_second});
  BOOST_TEST(all_of(later, text).text == "a fox and a");
  answer never(vocabulary(), {.stops = {" fox"}, .tokens_min = 1000});
  BOOST_TEST(all_of(never, text).text == text);
}

BOOST_AUTO_TEST_CASE(keeps_no_scores_unless_asked) {
  answer made(vocabulary(), {});
  BOOST_TEST(all_of(made, "A fox.").tokens.empty());
}

BOOST_AUTO_TEST_CASE(finds_the_most_probable_tokens) {
  const std::vector<float> logits{1, 3, 2, 3, -5};
  const auto best = most_probable(logits, 3);
  BOOST_REQUIRE_EQUAL(best.size(), 3U);
  BOOST_TEST(best[0].token == 1);
  BOOST_TEST(best[1].token == 3);
  BOOST_TEST(best[2].token == 2);
  double sum = 0;
  for (const token_score& score : most_probable(logits, 9)) sum += std::exp(score.log_probability);
  BOOST_TEST(std::abs(sum - 1) < 1e-5);
}

BOOST_AUTO_TEST_SUITE_END()
