// Goal: the compressed vocabulary is that of the release, id by id. Method: the table computed with
// another implementation of the same rule (tests/data/released/README.md), and small vocabularies
// with one rule each.
#include "runtime/text/engram_token_map.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/store/safetensors_reader.hpp"
#include "runtime/text/internal/byte_alphabet.hpp"
#include "tests/unit/runtime/text/fixtures.hpp"

namespace cedar::text {
namespace {

using map = std::vector<std::int32_t>;

/// Who has the class of each of `texts`, which are vocabulary entries behind the 256 bytes: −1 for
/// nobody before it, else the index of the first one, or −2 − byte if that is a byte.
std::vector<int> classes_of(const std::vector<std::string>& texts) {
  nlohmann::json document = minimal_document();
  document["model"]["vocab"].erase("aa");
  document["model"]["vocab"].erase("aaa");
  document["model"]["vocab"].erase("bc");
  document["model"]["merges"] = nlohmann::json::array();
  document["added_tokens"] = nlohmann::json::array();
  int next = 256;
  for (const std::string& text : texts) document["model"]["vocab"][to_byte_alphabet(text)] = next++;
  const tokenizer vocabulary = make_tokenizer(document);
  const std::uint32_t size = static_cast<std::uint32_t>(vocabulary.vocabulary_size());
  // The number of classes is not known here; the error tells it.
  for (std::uint32_t classes = 1; classes <= size; ++classes) {
    const result<map> made = engram_token_map(vocabulary, {size, classes, 0});
    if (!made) continue;
    std::vector<int> first;
    for (std::size_t i = 256; i < size; ++i) {
      std::size_t same = 0;
      while ((*made)[same] != (*made)[i]) ++same;
      first.push_back(same == i    ? -1
                      : same < 256 ? -2 - static_cast<int>(same)
                                   : static_cast<int>(same) - 256);
    }
    return first;
  }
  BOOST_FAIL("no number of classes fits");
  return {};
}

constexpr int like(char byte) {
  return -2 - static_cast<unsigned char>(byte);
}

BOOST_AUTO_TEST_SUITE(engram_token_maps)

BOOST_AUTO_TEST_CASE(the_released_table_is_reproduced) {
  const std::string bytes = read_test_file(CEDAR_RELEASED_DATA "/engram_token_map.i32");
  map expected(bytes.size() / sizeof(std::int32_t));
  std::memcpy(expected.data(), bytes.data(), bytes.size());
  BOOST_REQUIRE_EQUAL(expected.size(), 129280U);
  const result<map> made = engram_token_map(released_tokenizer(), {129280, 99092, 2});
  if (!made) BOOST_FAIL(made.error().message);
  BOOST_TEST(engram_classes(released_tokenizer()).value() == 99092U);
  BOOST_TEST(*made == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_golden_table_of_the_small_tokenizer_is_reproduced) {
  const auto file =
      store::safetensors_reader::open(CEDAR_TEST_DATA "/golden/ops/engram_hash.safetensors");
  BOOST_REQUIRE(file.has_value());
  const auto tensor = file->tensor("token_map");
  BOOST_REQUIRE(tensor.has_value());
  const std::span<const std::int32_t> expected = tensor->as<std::int32_t>();
  for (const char* name : {"tiny-12", "tiny-40", "tiny-vision"}) {
    const auto vocabulary =
        tokenizer::load(std::string(CEDAR_TEST_DATA "/golden/") + name + "/tokenizer.json");
    BOOST_REQUIRE(vocabulary.has_value());
    const result<map> made = engram_token_map(*vocabulary, {512, 347, 2});
    if (!made) BOOST_FAIL(made.error().message);
    BOOST_TEST(*made == expected, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(case_marks_and_compatibility_forms_fall_together) {
  BOOST_TEST(classes_of({"ab", "AB", "Äb", "ａｂ", "a\u0903b", "a\u20DDb", "ⓐⓑ"}) ==
                 (std::vector<int>{-1, 0, 0, 0, 0, 0, 0}),
             boost::test_tools::per_element());
  // U+0130 decomposes before it is lower-cased; a final sigma is like any other.
  BOOST_TEST(classes_of({"İi", "ii", "ΑΣ", "ας", "ασ"}) == (std::vector<int>{-1, 0, -1, -1, 2}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(blanks_collapse_and_are_stripped_but_a_lone_space_stays) {
  BOOST_TEST(classes_of({" a", "a\t", "\u3000a\u0085", "a \r\n b", "a b"}) ==
                 (std::vector<int>{like('A'), like('A'), like('A'), -1, 3}),
             boost::test_tools::per_element());
  BOOST_TEST(classes_of({"  ", "\r\n", "\u00A0", " \u2028"}) ==
                 (std::vector<int>{like('\t'), like('\t'), like('\t'), -1}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_key_that_becomes_empty_falls_back_to_the_text) {
  BOOST_TEST(
      classes_of({"\u0301", "\u0300", "\u2028", "\u2029"}) == (std::vector<int>{-1, -1, -1, -1}),
      boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(tokens_that_are_not_text_keep_their_own_string) {
  // A broken piece, the same with an upper-case letter, and U+FFFD itself next to a blank.
  BOOST_TEST(
      classes_of({"a\xE6", "A\xE6", "\uFFFD", "\uFFFD "}) == (std::vector<int>{-1, -1, -1, -1}),
      boost::test_tools::per_element());
  // Both kinds of keys live in one space: the lone byte 8F is written "ı", which as a text is its
  // own normal form.
  BOOST_TEST(classes_of({"ı"}) == (std::vector<int>{-2 - 0x8F}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(ids_beyond_the_tokenizer_are_mapped_like_the_pad_token) {
  const tokenizer vocabulary = make_tokenizer(minimal_document());
  map made;
  std::uint32_t classes = 0;
  for (; made.empty(); ++classes)
    made = engram_token_map(vocabulary, {300, classes, 259}).value_or(map{});
  BOOST_REQUIRE_EQUAL(made.size(), 300U);
  for (std::size_t i = 262; i < 300; ++i) BOOST_TEST(made[i] == made[259]);
}

BOOST_AUTO_TEST_CASE(disagreement_with_the_configuration_is_an_error) {
  const tokenizer vocabulary = make_tokenizer(minimal_document());
  const result<map> classes = engram_token_map(vocabulary, {262, 3, 2});
  BOOST_REQUIRE(!classes);
  BOOST_TEST((classes.error().code == errc::mismatch));
  BOOST_TEST(classes.error().message.find("3") != std::string::npos);
  BOOST_TEST((engram_token_map(vocabulary, {261, 3, 2}).error().code == errc::mismatch));
  BOOST_TEST((engram_token_map(vocabulary, {262, 3, 262}).error().code == errc::invalid_argument));
  BOOST_TEST((engram_token_map(vocabulary, {262, 3, -1}).error().code == errc::invalid_argument));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cedar::text
