// Goal: encode and decode are each other's inverse, control strings are tokens only where asked
// for, and no text takes long. Method: a minimal tokenizer with known ids, then properties over
// random texts with the released tokenizer and every small one.
#include "runtime/text/tokenizer.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <ctime>
#include <random>
#include <string>
#include <thread>

#include "tests/unit/runtime/text/fixtures.hpp"

namespace cedar::text {
namespace {

using tokens = std::vector<token_id>;
constexpr std::uint64_t seed = 4711;

tokens encoded(const tokenizer& vocabulary, std::string_view text, control_strings mode) {
  const result<tokens> made = vocabulary.encode(text, mode);
  if (!made) BOOST_FAIL(made.error().message);
  return *made;
}

std::string decoded(const tokenizer& vocabulary, const tokens& ids, decode_options options = {}) {
  const result<std::string> made = vocabulary.decode(ids, options);
  if (!made) BOOST_FAIL(made.error().message);
  return *made;
}

void check_properties(const tokenizer& vocabulary, std::uint64_t rounds) {
  std::mt19937_64 random(seed);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::string text = random_text(random, random() % 60);
    for (const control_strings mode : {control_strings::plain_text, control_strings::tokens})
      BOOST_REQUIRE_EQUAL(decoded(vocabulary, encoded(vocabulary, text, mode)), text);
    for (const token_id token : encoded(vocabulary, text, control_strings::plain_text))
      BOOST_REQUIRE(!vocabulary.is_control(token));
  }
}

BOOST_AUTO_TEST_SUITE(tokenizing)

BOOST_AUTO_TEST_CASE(words_are_merged_and_control_strings_are_cut_out) {
  const tokenizer vocabulary = make_tokenizer(minimal_document());
  BOOST_TEST(encoded(vocabulary, "aaaabc", control_strings::tokens) == (tokens{256, 256, 258}),
             boost::test_tools::per_element());
  BOOST_TEST(encoded(vocabulary, "aaa", control_strings::tokens) == (tokens{257}),
             boost::test_tools::per_element());
  BOOST_TEST(encoded(vocabulary, "a<s>a<s><t>b<t>c", control_strings::tokens) ==
                 (tokens{'a', 259, 'a', 261, 'b', 260, 'c'}),
             boost::test_tools::per_element());
  BOOST_TEST(encoded(vocabulary, "<s>", control_strings::plain_text) == (tokens{'<', 's', '>'}),
             boost::test_tools::per_element());
  BOOST_TEST(encoded(vocabulary, "", control_strings::tokens).empty());
  BOOST_TEST(encoded(vocabulary, "é", control_strings::tokens) == (tokens{0xC3, 0xA9}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(tokens_are_known_by_bytes_and_by_string) {
  const tokenizer vocabulary = make_tokenizer(minimal_document());
  BOOST_TEST(vocabulary.vocabulary_size() == 262U);
  BOOST_TEST(vocabulary.token_bytes(' ').value() == " ");
  BOOST_TEST(vocabulary.token_string(' ').value() == "Ġ");
  BOOST_TEST(vocabulary.token_string(0xAD).value() == "Ń");
  BOOST_TEST(vocabulary.token_string(260).value() == "<t>");
  BOOST_TEST(vocabulary.control_token("<s>").value() == 259);
  BOOST_TEST(!vocabulary.control_token("aa").has_value());
  BOOST_TEST(vocabulary.is_control(260));
  BOOST_TEST(!vocabulary.is_control(256));
  BOOST_TEST(!vocabulary.is_control(262));
  BOOST_TEST(!vocabulary.is_control(-1));
}

BOOST_AUTO_TEST_CASE(special_tokens_can_be_left_out) {
  const tokenizer vocabulary = make_tokenizer(minimal_document());
  const tokens ids = {259, 'a', 260, 261, 'b'};
  BOOST_TEST(decoded(vocabulary, ids) == "<s>a<t><s><t>b");
  BOOST_TEST(decoded(vocabulary, ids, {.skip_special = true}) == "a<t>b");
  // The names of the release decide over the flag in the file.
  nlohmann::json document = minimal_document();
  document["added_tokens"][0]["content"] = "<think>";
  const tokenizer thinking = make_tokenizer(document);
  BOOST_TEST(!thinking.hidden(259));
  BOOST_TEST(thinking.hidden(261));
}

BOOST_AUTO_TEST_CASE(ids_outside_the_vocabulary_are_an_error) {
  const tokenizer vocabulary = make_tokenizer(minimal_document());
  for (const token_id token : {-1, 262, 1 << 30}) {
    BOOST_TEST((vocabulary.decode(tokens{'a', token}).error().code == errc::invalid_argument));
    BOOST_TEST((vocabulary.token_string(token).error().code == errc::invalid_argument));
    BOOST_TEST(!vocabulary.hidden(token));
  }
  BOOST_TEST(vocabulary.token_bytes(262).error().message == "token 262 is outside 0..261");
}

BOOST_AUTO_TEST_CASE(a_text_that_is_not_utf8_is_an_error_with_its_place) {
  const tokenizer vocabulary = make_tokenizer(minimal_document());
  for (const control_strings mode : {control_strings::plain_text, control_strings::tokens}) {
    const result<tokens> made = vocabulary.encode("ab\xE6\x97<s>", mode);
    BOOST_REQUIRE(!made);
    BOOST_TEST((made.error().code == errc::invalid_argument));
    BOOST_TEST(made.error().message == "not UTF-8 at byte 2");
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_there_is_an_error_with_its_name) {
  const result<tokenizer> made = tokenizer::load("nowhere/tokenizer.json");
  BOOST_REQUIRE(!made);
  BOOST_TEST((made.error().code == errc::not_found));
  BOOST_TEST(made.error().message.find("nowhere/tokenizer.json") == 0U);
}

BOOST_AUTO_TEST_CASE(every_text_decodes_to_itself_and_user_text_has_no_control_tokens) {
  BOOST_TEST_MESSAGE("seed " << seed);
  check_properties(released_tokenizer(), 2000);
}

BOOST_AUTO_TEST_CASE(small_tokenizers_load_and_have_the_same_properties) {
  for (const std::string& file : tiny_tokenizer_files()) {
    const result<tokenizer> loaded = tokenizer::load(file);
    if (!loaded) BOOST_FAIL(loaded.error().message);
    check_properties(*loaded, 300);
    BOOST_TEST(loaded->control_token("<｜end▁of▁sentence｜>").value() == 1);
    BOOST_TEST(loaded->control_token("<｜User｜>").value() ==
               static_cast<token_id>(loaded->vocabulary_size() == 2048 ? 2040 : 500));
  }
}

BOOST_AUTO_TEST_CASE(one_tokenizer_serves_several_threads) {
  const tokenizer& vocabulary = released_tokenizer();
  std::mt19937_64 random(seed);
  std::vector<std::string> texts(200);
  std::vector<tokens> expected;
  for (std::string& text : texts) {
    text = random_text(random, 40);
    expected.push_back(encoded(vocabulary, text, control_strings::tokens));
  }
  std::array<std::vector<tokens>, 3> made;  // Boost.Test is used by one thread only
  std::vector<std::thread> threads;
  for (std::vector<tokens>& of_thread : made)
    threads.emplace_back([&texts, &vocabulary, &of_thread] {
      for (const std::string& text : texts)
        of_thread.push_back(vocabulary.encode(text, control_strings::tokens).value());
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<tokens>& of_thread : made) BOOST_TEST((of_thread == expected));
}

/// Seconds of this process that `count` encodings of `text` take, which must decode to it.
double encoding_seconds(const std::string& text, int count) {
  const std::clock_t start = std::clock();
  tokens ids;
  for (int i = 0; i < count; ++i)
    ids = encoded(released_tokenizer(), text, control_strings::tokens);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  BOOST_TEST(decoded(released_tokenizer(), ids) == text);
  return seconds;
}

BOOST_AUTO_TEST_CASE(long_texts_take_linear_time) {
  // The same bytes in one text and in eight: about once the time if it is linear, eight times if it
  // is quadratic, on any machine.
  constexpr std::size_t size = std::size_t{1} << 16;
  constexpr int parts = 8;
  struct beginning_and_end {
    std::string unit, end;
  };
  for (const auto& [unit, end] : {beginning_and_end{"a", ""},
                                  {" ", ""},
                                  {"7", ""},
                                  {"\n", ""},
                                  {"!", ""},
                                  {"<", ""},
                                  {"\x01", ""},
                                  {" ", "x"},
                                  {"<｜User｜ \n a1!<", ""}}) {
    std::string part;
    while (part.size() < size) part += unit;
    std::string whole;
    for (int i = 0; i < parts; ++i) whole += part;
    const double apart = encoding_seconds(part + end, parts);
    const double together = encoding_seconds(whole + end, 1);
    BOOST_TEST_MESSAGE("'" << unit << "' to 512 KiB: " << together << " s, in eight " << apart
                           << " s");
    BOOST_TEST(together < 4 * apart);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cedar::text
