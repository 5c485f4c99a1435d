// Goal: broken UTF-8 is found and replaced exactly, however it is cut. Method: the cases of the
// Unicode standard (chapter 3, table 3-8 and neighbours), a decoder that works on code points, and
// random bytes cut at random places.
#include "runtime/text/utf8.hpp"

#include <boost/test/unit_test.hpp>
#include <random>
#include <string>

#include "tests/unit/runtime/text/fixtures.hpp"

namespace cedar::text {
namespace {

/// Replaces by trying every length at every place: a sequence is well-formed if it is the encoding
/// of the scalar value that it decodes to.
bool well_formed(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  for (std::size_t i = 1; i < bytes.size(); ++i)
    if (at(i) < 0x80 || at(i) > 0xBF) return false;
  if (bytes.size() == 1) return at(0) < 0x80;
  if (bytes.size() == 2) return at(0) >= 0xC2 && at(0) <= 0xDF;
  if (bytes.size() == 3 && at(0) >= 0xE0 && at(0) <= 0xEF) {
    const unsigned code = (at(0) & 0xFU) << 12 | (at(1) & 0x3FU) << 6 | (at(2) & 0x3FU);
    return code >= 0x800 && (code < 0xD800 || code > 0xDFFF);
  }
  if (bytes.size() == 4 && at(0) >= 0xF0 && at(0) <= 0xF7) {
    const unsigned code =
        (at(0) & 0x7U) << 18 | (at(1) & 0x3FU) << 12 | (at(2) & 0x3FU) << 6 | (at(3) & 0x3FU);
    return code >= 0x10000 && code <= 0x10FFFF;
  }
  return false;
}

/// True if some bytes after `prefix` make it well-formed.
bool can_become_well_formed(const std::string& prefix) {
  for (const char first : {'\x80', '\x8F', '\x90', '\x9F', '\xA0', '\xBF'})
    for (std::size_t more = 1; prefix.size() + more <= 4; ++more)
      if (well_formed(prefix + first + std::string(more - 1, '\x80'))) return true;
  return false;
}

std::string replaced_slowly(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    std::size_t size = 1;
    while (size < 4 && size < bytes.size() && !well_formed(bytes.substr(0, size)) &&
           (well_formed(bytes.substr(0, size + 1)) ||
            can_become_well_formed(std::string(bytes.substr(0, size + 1)))))
      ++size;
    const std::string_view taken = bytes.substr(0, size);
    out += well_formed(taken) ? taken : replacement_character;
    bytes.remove_prefix(size);
  }
  return out;
}

BOOST_AUTO_TEST_SUITE(utf8)

BOOST_AUTO_TEST_CASE(every_maximal_subpart_becomes_one_replacement_character) {
  const std::string r(replacement_character);
  BOOST_TEST(to_valid_utf8("a\xF0\x80\x80\x41") == "a" + r + r + r + "A");
  BOOST_TEST(to_valid_utf8("\xED\xA0\x80") == r + r + r);  // a surrogate
  BOOST_TEST(to_valid_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42") ==
             r + r + r + r + r + "A" + r + r + "B");
  BOOST_TEST(to_valid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41") == r + r + r + r + "A");
  BOOST_TEST(to_valid_utf8("\xC0\xAF\xE0\x80\xBF") == r + r + r + r + r);  // overlong
  BOOST_TEST(to_valid_utf8("\xE6\x97") == r);
  BOOST_TEST(to_valid_utf8("日本 \U0010FFFF é") == "日本 \U0010FFFF é");
}

BOOST_AUTO_TEST_CASE(the_offset_of_the_first_broken_sequence_is_found) {
  BOOST_TEST(!first_invalid_utf8("日本 \U0010FFFF é"));
  BOOST_TEST(!first_invalid_utf8(""));
  BOOST_TEST(first_invalid_utf8("日\xFF").value() == 3U);
  BOOST_TEST(first_invalid_utf8("ab\xE6\x97").value() == 2U);
}

BOOST_AUTO_TEST_CASE(random_bytes_agree_with_the_definition_however_they_are_cut) {
  std::mt19937_64 random(20240607);
  for (int round = 0; round < 4000; ++round) {
    const std::string bytes = random_bytes(random, random() % 24);
    const std::string expected = replaced_slowly(bytes);
    BOOST_REQUIRE_EQUAL(to_valid_utf8(bytes), expected);
    BOOST_REQUIRE_EQUAL(!first_invalid_utf8(bytes), expected == bytes);
    utf8_assembler assembler;
    std::string pieces;
    for (std::size_t done = 0; done < bytes.size();) {
      const std::size_t size = 1 + random() % 3;
      const std::string piece = assembler.push(std::string_view(bytes).substr(done, size));
      BOOST_REQUIRE(!first_invalid_utf8(piece));
      pieces += piece;
      done += size;
    }
    BOOST_REQUIRE_EQUAL(pieces + assembler.finish(), expected);
    BOOST_REQUIRE_EQUAL(assembler.finish(), "");
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cedar::text
