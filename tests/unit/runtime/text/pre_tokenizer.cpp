// Goal: expressions cut a text as the tokenizers format means it. Method: small expressions with
// known pieces.
#include "runtime/text/internal/pre_tokenizer.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

namespace cedar::text {
namespace {

using pieces = std::vector<std::string_view>;

pre_tokenizer compiled(const std::vector<std::string>& patterns) {
  result<pre_tokenizer> made = pre_tokenizer::compile(patterns);
  if (!made) BOOST_FAIL(made.error().message);
  return std::move(*made);
}

pieces split(const std::vector<std::string>& patterns, std::string_view text) {
  const result<pieces> made = compiled(patterns).split(text);
  if (!made) BOOST_FAIL(made.error().message);
  return *made;
}

errc refusal(const std::string& pattern) {
  const result<pre_tokenizer> made = pre_tokenizer::compile({pattern});
  BOOST_REQUIRE(!made);
  BOOST_TEST(made.error().message.find(pattern) != std::string::npos);
  return made.error().code;
}

BOOST_AUTO_TEST_SUITE(pre_tokenizing)

BOOST_AUTO_TEST_CASE(matches_are_isolated_and_the_rest_is_kept) {
  BOOST_TEST(split({"[0-9]{1,2}"}, "a123b4") == (pieces{"a", "12", "3", "b", "4"}));
  BOOST_TEST(split({"[0-9]"}, "ab") == (pieces{"ab"}));
  BOOST_TEST(split({}, "ab") == (pieces{"ab"}));
  BOOST_TEST(split({"a"}, "").empty());
}

BOOST_AUTO_TEST_CASE(expressions_see_only_the_pieces_of_the_previous_one) {
  // In the whole text the look-ahead would leave one blank for the digit.
  BOOST_TEST(split({"[0-9]", "\\s+(?!\\S)|\\s+"}, "a  1") == (pieces{"a", "  ", "1"}));
  BOOST_TEST(split({"\\s+(?!\\S)|\\s+"}, "a  1") == (pieces{"a", " ", " ", "1"}));
  // A look-behind sees the piece that it is in, from its start.
  BOOST_TEST(split({"[0-9]", "(?<=b)c"}, "bc1c") == (pieces{"b", "c", "1", "c"}));
}

BOOST_AUTO_TEST_CASE(classes_are_those_of_unicode) {
  BOOST_TEST(split({"\\p{L}+"}, "é日1ß") == (pieces{"é日", "1", "ß"}));
  BOOST_TEST(split({"\\d+"}, "a1٣b") == (pieces{"a", "1٣", "b"}));
  BOOST_TEST(split({"\\s"}, "a\u3000b\u0085c") == (pieces{"a", "\u3000", "b", "\u0085", "c"}));
  // U+180E separated words until Unicode 6.3, and still does for PCRE2's own \s.
  BOOST_TEST(split({"\\s"}, "a\u180Eb") == (pieces{"a\u180Eb"}));
  BOOST_TEST(split({"[\\s.]"}, "a\u180Eb.") == (pieces{"a\u180Eb", "."}));
  BOOST_TEST(split({"a\\S"}, "a\u180Eb") == (pieces{"a\u180E", "b"}));
  BOOST_TEST(split({"\\\\s"}, "\\s") == (pieces{"\\s"}));  // an escaped backslash, then s
}

BOOST_AUTO_TEST_CASE(expressions_that_cannot_cut_are_refused) {
  BOOST_TEST((refusal("a*") == errc::invalid_argument));
  BOOST_TEST((refusal("(") == errc::invalid_argument));
  BOOST_TEST((refusal("\\C") == errc::invalid_argument));
  BOOST_TEST((refusal("a\\") == errc::invalid_argument));
  const std::vector<std::string> many(pre_tokenizer::patterns_max + 1, "a");
  BOOST_TEST((pre_tokenizer::compile(many).error().code == errc::invalid_argument));
}

BOOST_AUTO_TEST_CASE(a_match_of_nothing_is_an_error_not_a_loop) {
  const result<pieces> made = compiled({"a\\K"}).split("aa");
  BOOST_REQUIRE(!made);
  BOOST_TEST((made.error().code == errc::invalid_argument));
}

BOOST_AUTO_TEST_CASE(an_expression_that_needs_too_much_is_an_error) {
  const result<pieces> made = compiled({"(?:a|b|ab)+c"}).split(std::string(1 << 20, 'a'));
  BOOST_REQUIRE(!made);
  BOOST_TEST((made.error().code == errc::capacity));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cedar::text
