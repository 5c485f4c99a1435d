// Goal: the released tokenizer gives the published ids. Method: 48 texts whose ids two other
// implementations agree on (tests/data/released/README.md).
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/text/tokenizer.hpp"
#include "tests/unit/runtime/text/fixtures.hpp"

namespace cedar::text {
namespace {

using tokens = std::vector<token_id>;

BOOST_AUTO_TEST_SUITE(released_tokenizer_file)

BOOST_AUTO_TEST_CASE(all_vectors_agree) {
  const auto cases =
      nlohmann::json::parse(read_test_file(CEDAR_TEST_DATA "/released/tokenizer_vectors.json"));
  BOOST_REQUIRE_EQUAL(cases.size(), 48U);
  for (const auto& one : cases) {
    const std::string text = one.at("text");
    const tokens expected = one.at("ids");
    const result<tokens> made = released_tokenizer().encode(text, control_strings::tokens);
    BOOST_REQUIRE(made.has_value());
    BOOST_TEST_CONTEXT("text: " << text) {
      BOOST_TEST(*made == expected, boost::test_tools::per_element());
    }
    BOOST_TEST(released_tokenizer().decode(expected).value() == text);
  }
}

BOOST_AUTO_TEST_CASE(control_tokens_have_their_ids) {
  const tokenizer& vocabulary = released_tokenizer();
  BOOST_TEST(vocabulary.vocabulary_size() == 129280U);
  const auto id = [&](std::string_view string) { return vocabulary.control_token(string).value(); };
  BOOST_TEST(id("<｜begin▁of▁sentence｜>") == 0);
  BOOST_TEST(id("<｜end▁of▁sentence｜>") == 1);
  BOOST_TEST(id("<｜▁pad▁｜>") == 2);
  BOOST_TEST(id("<｜System｜>") == 128799);
  BOOST_TEST(id("<｜User｜>") == 128803);
  BOOST_TEST(id("<｜Assistant｜>") == 128804);
  BOOST_TEST(id("<think>") == 128821);
  BOOST_TEST(id("</think>") == 128822);
  BOOST_TEST(id("｜DSML｜") == 128825);
  BOOST_TEST(id("<｜deepseek_image｜>") == 129264);
}

BOOST_AUTO_TEST_CASE(visible_and_hidden_control_tokens_are_those_of_the_release) {
  const tokenizer& vocabulary = released_tokenizer();
  for (const token_id token : {0, 1, 2, 128000, 128798, 128805, 128815, 128826, 128840, 129279})
    BOOST_TEST(vocabulary.hidden(token), token);
  for (const token_id token : {128799, 128800, 128803, 128804, 128806, 128814, 128821, 128822,
                               128825, 128828, 128829, 128839, 128844, 128845})
    BOOST_TEST(!vocabulary.hidden(token), token);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cedar::text
