// Goal: control strings are found leftmost, then longest. Method: cases, and random texts against a
// search that tries every string at every place.
#include "runtime/text/internal/added_tokens.hpp"

#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "kernels/base/check.hpp"

namespace cedar::text {
namespace {

BOOST_AUTO_TEST_SUITE(added_tokens)

BOOST_AUTO_TEST_CASE(the_leftmost_then_the_longest_string_is_found) {
  added_token_matcher matcher;
  BOOST_TEST(matcher.insert("<a", 1));
  BOOST_TEST(matcher.insert("<ab>", 2));
  BOOST_TEST(matcher.insert("b", 3));
  const auto longest = matcher.find("x<ab>", 0);
  BOOST_REQUIRE(longest.has_value());
  BOOST_TEST(longest->begin == 1U);
  BOOST_TEST(longest->size == 4U);
  BOOST_TEST(longest->token == 2);
  BOOST_TEST(matcher.find("x<ab", 0)->token == 1);
  BOOST_TEST(matcher.find("x<ab>", 2)->token == 3);
  BOOST_TEST(!matcher.find("x<", 0).has_value());
}

BOOST_AUTO_TEST_CASE(only_whole_strings_are_looked_up) {
  added_token_matcher matcher;
  BOOST_TEST(matcher.insert("<a", 1));
  BOOST_TEST(matcher.insert("<ab>", 2));
  BOOST_TEST(!matcher.insert("<a", 3));
  BOOST_TEST(matcher.find_exact("<a").value() == 1);
  BOOST_TEST(!matcher.find_exact("<ab").has_value());
  BOOST_TEST(!matcher.find_exact("x<a").has_value());
  BOOST_TEST(!matcher.find_exact("").has_value());
  BOOST_CHECK_THROW(matcher.insert("", 4), defect);
}

BOOST_AUTO_TEST_CASE(random_texts_agree_with_a_full_search) {
  std::mt19937_64 random(11);
  const auto draw = [&](std::size_t size_max) {
    std::string text;
    for (std::size_t i = 1 + random() % size_max; i > 0; --i)
      text += static_cast<char>('a' + static_cast<char>(random() % 2));
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    added_token_matcher matcher;
    std::vector<std::string> strings;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::string one = draw(6);
      if (matcher.insert(one, static_cast<token_id>(strings.size()))) strings.push_back(one);
    }
    const std::string text = draw(40);
    std::size_t expected_begin = text.size();
    std::size_t expected_size = 0;
    for (std::size_t at = text.size(); at-- > 0;)
      for (const std::string& one : strings)
        if (text.compare(at, one.size(), one) == 0 &&
            (expected_begin != at || one.size() > expected_size))
          expected_begin = at, expected_size = one.size();
    const auto found = matcher.find(text, 0);
    BOOST_REQUIRE_EQUAL(found.has_value(), expected_size > 0);
    if (!found) continue;
    BOOST_REQUIRE_EQUAL(found->begin, expected_begin);
    BOOST_REQUIRE_EQUAL(found->size, expected_size);
    BOOST_REQUIRE_EQUAL(strings[static_cast<std::size_t>(found->token)],
                        text.substr(expected_begin, expected_size));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cedar::text
