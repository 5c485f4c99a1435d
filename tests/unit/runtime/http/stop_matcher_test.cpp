// Goal: a text ends before its first stop string, wherever it was cut. Method: cases by hand, and
// seeded random texts over few letters against the definition applied to the whole text.
#include "runtime/http/stop_matcher.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>

using cedar::http::stop_matcher;

namespace {

/// Pushes `text` in pieces that end where `cuts` says.
std::string pushed(const std::vector<std::string>& stops, const std::string& text,
                   const std::vector<std::size_t>& cuts, bool& stopped) {
  stop_matcher matcher(stops);
  std::string out;
  std::size_t from = 0;
  for (const std::size_t cut : cuts) {
    out += matcher.push(text.substr(from, cut - from));
    from = cut;
  }
  out += matcher.push(text.substr(from));
  out += matcher.finish();
  stopped = matcher.stopped();
  return out;
}

/// The definition: the shortest beginning of the text that ends with a stop string, without the
/// longest one that it ends with.
std::string defined(const std::vector<std::string>& stops, const std::string& text, bool& stopped) {
  for (std::size_t bytes = 1; bytes <= text.size(); ++bytes) {
    std::size_t longest = 0;
    for (const std::string& stop : stops)
      if (text.substr(0, bytes).ends_with(stop)) longest = std::max(longest, stop.size());
    if (longest == 0) continue;
    stopped = true;
    return text.substr(0, bytes - longest);
  }
  stopped = false;
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stop_matcher_suite)

BOOST_AUTO_TEST_CASE(holds_back_what_may_begin_a_stop_string) {
  stop_matcher matcher({"END."});
  BOOST_TEST(matcher.push("the E") == "the ");
  BOOST_TEST(matcher.push("N") == "");
  BOOST_TEST(matcher.push("T") == "ENT");
  BOOST_TEST(matcher.push("EN") == "");
  BOOST_TEST(matcher.finish() == "EN");
  BOOST_TEST(!matcher.stopped());
}

BOOST_AUTO_TEST_CASE(says_nothing_after_a_stop_string) {
  stop_matcher matcher({"b"});
  BOOST_TEST(matcher.push("abc") == "a");
  BOOST_TEST(matcher.stopped());
  BOOST_TEST(matcher.push("more") == "");
  BOOST_TEST(matcher.finish() == "");
}

BOOST_AUTO_TEST_CASE(gives_the_same_for_all_cuts) {
  constexpr unsigned seed = 20261129;
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937 random(seed);
  const auto word = [&](std::size_t most) {
    std::string out(1 + random() % most, 'a');
    for (char& letter : out) letter = static_cast<char>('a' + random() % 3);
    return out;
  };
  std::size_t stops_seen = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops(1 + random() % 3);
    for (std::string& stop : stops) stop = word(5);
    const std::string text = word(24);
    std::vector<std::size_t> cuts(random() % 8);
    for (std::size_t& cut : cuts) cut = random() % (text.size() + 1);
    std::ranges::sort(cuts);
    bool expected_stop = false;
    bool stop = false;
    const std::string expected = defined(stops, text, expected_stop);
    BOOST_REQUIRE_EQUAL(pushed(stops, text, cuts, stop), expected);
    BOOST_REQUIRE_EQUAL(stop, expected_stop);
    stops_seen += expected_stop ? 1 : 0;
  }
  BOOST_TEST(stops_seen > 500U);
}

BOOST_AUTO_TEST_SUITE_END()
