// Goal: streamed text is the decoded text, and no piece ends inside a character. Method: random
// texts and random token ids, pushed one by one.
#include "runtime/text/stream_decoder.hpp"

#include <boost/test/unit_test.hpp>
#include <random>
#include <string>

#include "tests/unit/runtime/text/fixtures.hpp"

namespace cedar::text {
namespace {

using tokens = std::vector<token_id>;
constexpr std::uint64_t seed = 99;

std::string streamed(const tokenizer& vocabulary, const tokens& ids, decode_options options = {}) {
  stream_decoder decoder(vocabulary, options);
  std::string text;
  for (const token_id token : ids) {
    const result<std::string> piece = decoder.push(token);
    BOOST_REQUIRE(piece.has_value());
    BOOST_REQUIRE(!first_invalid_utf8(*piece));
    text += *piece;
  }
  return text + decoder.finish();
}

BOOST_AUTO_TEST_SUITE(stream_decoding)

BOOST_AUTO_TEST_CASE(a_character_appears_when_its_last_byte_does) {
  const tokenizer vocabulary = make_tokenizer(minimal_document());
  stream_decoder decoder(vocabulary);
  BOOST_TEST(decoder.push('a').value() == "a");
  BOOST_TEST(decoder.push(0xF0).value() == "");
  BOOST_TEST(decoder.push(0x9F).value() == "");
  BOOST_TEST(decoder.push(0x98).value() == "");
  BOOST_TEST(decoder.push(0x80).value() == "😀");
  BOOST_TEST(decoder.push(0xE6).value() == "");
  BOOST_TEST(decoder.push('b').value() == "\uFFFDb");
  BOOST_TEST(decoder.push(0xE6).value() == "");
  BOOST_TEST(decoder.finish() == "\uFFFD");
  BOOST_TEST(decoder.finish() == "");
}

BOOST_AUTO_TEST_CASE(a_wrong_id_changes_nothing) {
  const tokenizer vocabulary = make_tokenizer(minimal_document());
  stream_decoder decoder(vocabulary);
  BOOST_TEST(decoder.push(0xC3).value() == "");
  BOOST_TEST((decoder.push(262).error().code == errc::invalid_argument));
  BOOST_TEST(decoder.push(0xA9).value() == "é");
}

BOOST_AUTO_TEST_CASE(special_tokens_are_skipped_even_inside_a_character) {
  const tokenizer vocabulary = make_tokenizer(minimal_document());
  const tokens ids = {0xC3, 259, 0xA9, 260};
  BOOST_TEST(streamed(vocabulary, ids, {.skip_special = true}) == "é<t>");
  BOOST_TEST(streamed(vocabulary, ids) == "\uFFFD<s>\uFFFD<t>");
}

BOOST_AUTO_TEST_CASE(random_texts_and_random_ids_stream_to_what_they_decode_to) {
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937_64 random(seed);
  const tokenizer& vocabulary = released_tokenizer();
  for (int round = 0; round < 2000; ++round) {
    const std::string text = random_text(random, random() % 40);
    tokens ids = vocabulary.encode(text, control_strings::tokens).value();
    BOOST_REQUIRE_EQUAL(streamed(vocabulary, ids), text);
    ids.clear();
    for (std::uint64_t i = random() % 30; i > 0; --i)
      ids.push_back(static_cast<token_id>(random() % (random() % 2 ? 260 : 129280)));
    for (const bool skip : {false, true}) {
      const decode_options options{.skip_special = skip};
      BOOST_REQUIRE_EQUAL(streamed(vocabulary, ids, options),
                          to_valid_utf8(vocabulary.decode(ids, options).value()));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cedar::text
