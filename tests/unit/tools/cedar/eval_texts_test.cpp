// Goal: texts for evaluation are read as they are meant, and what is wrong is named by its line.
// Method: small files over the tokenizer of cedar-tiny.
#include "tools/cedar/eval_texts.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/temporary_folder.hpp"

using namespace cedar;
using namespace cedar::tools;

namespace {

const text::tokenizer& tokenizer() {
  static const auto loaded =
      text::tokenizer::load(CEDAR_SOURCE_DIR "/configs/models/cedar-tiny/tokenizer.json");
  BOOST_REQUIRE(loaded);
  return *loaded;
}

void check_refused(const std::string& content, const std::string& named) {
  const test::temporary_folder folder;
  const auto read = read_eval_texts(folder.write("t.jsonl", content), tokenizer(), 2);
  BOOST_REQUIRE(!read);
  BOOST_TEST(read.error().message.find(named) != std::string::npos, read.error().message);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(eval_texts)

BOOST_AUTO_TEST_CASE(a_text_is_cut_and_an_answer_follows_whole) {
  const test::temporary_folder folder;
  const auto read =
      read_eval_texts(folder.write("t.jsonl",
                                   "{\"text\": \"One day the cat went home.\"}\n\n"
                                   "{\"text\": \"The cat is\", \"answer\": \" red\"}\n"),
                      tokenizer(), 2);
  BOOST_REQUIRE_MESSAGE(read, (read ? "" : read.error().message));
  BOOST_REQUIRE_EQUAL(read->size(), 2U);
  const auto whole =
      tokenizer().encode("One day the cat went home.", text::control_strings::plain_text).value();
  std::vector<token_id> joined((*read)[0].prompt.begin() + 1, (*read)[0].prompt.end());
  joined.insert(joined.end(), (*read)[0].following.begin(), (*read)[0].following.end());
  BOOST_TEST(joined == whole, boost::test_tools::per_element());  // after the begin of sequence
  BOOST_TEST((*read)[0].following.size() == 2U);
  BOOST_TEST(!(*read)[0].is_answer);
  BOOST_TEST((*read)[1].is_answer);
  BOOST_TEST(
      (*read)[1].following == tokenizer().encode(" red", text::control_strings::plain_text).value(),
      boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_named_by_its_line) {
  check_refused("", "has no text");
  check_refused("{\"text\": \"a cat sat on it\"}\nno\n", "t.jsonl:2: not a JSON object");
  check_refused("{\"answer\": \"a\"}", "no 'text'");
  check_refused("{\"text\": 3}", "'text': known are");
  check_refused("{\"text\": \"a\", \"reply\": \"b\"}", "'reply': known are");
  check_refused("{\"text\": \"a\", \"answer\": \"\"}", "the answer is empty");
  check_refused("{\"text\": \"\"}", "the text has 1 tokens");
  const auto absent = read_eval_texts("/nowhere/t.jsonl", tokenizer(), 2);
  BOOST_REQUIRE(!absent);
  BOOST_TEST((absent.error().code == errc::not_found));
}

BOOST_AUTO_TEST_SUITE_END()
