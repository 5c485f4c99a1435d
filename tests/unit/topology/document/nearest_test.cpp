// Goal: hints name the word that was meant, and stay silent or list the choices otherwise.
// Method: distances counted by hand; symmetry and triangle inequality over a small vocabulary.
#include "topology/document/nearest.hpp"

#include <boost/test/unit_test.hpp>

using namespace cedar::topology;

BOOST_AUTO_TEST_SUITE(nearest_word)

BOOST_AUTO_TEST_CASE(counts_insertions_deletions_changes_and_swaps) {
  BOOST_TEST(spelling_distance("", "") == 0U);
  BOOST_TEST(spelling_distance("node", "") == 4U);
  BOOST_TEST(spelling_distance("node", "nodes") == 1U);
  BOOST_TEST(spelling_distance("nodes", "node") == 1U);
  BOOST_TEST(spelling_distance("mode", "node") == 1U);
  BOOST_TEST(spelling_distance("ndoe", "node") == 1U);
  BOOST_TEST(spelling_distance("NODE", "node") == 0U);
  BOOST_TEST(spelling_distance("kitten", "sitting") == 3U);
}

BOOST_AUTO_TEST_CASE(is_symmetric) {
  const std::vector<std::string> words = {"", "a", "ab", "ba", "limits", "limit", "tls", "listen"};
  for (const auto& a : words) {
    for (const auto& b : words) BOOST_TEST(spelling_distance(a, b) == spelling_distance(b, a));
  }
}

BOOST_AUTO_TEST_CASE(finds_the_closest_candidate_and_prefers_the_first_among_equals) {
  const std::vector<std::string> keys = {"address", "model_path", "node", "nose"};
  BOOST_TEST(nearest("adress", keys).value() == "address");
  BOOST_TEST(nearest("modelpath", keys).value() == "model_path");
  BOOST_TEST(nearest("noe", keys).value() == "node");
}

BOOST_AUTO_TEST_CASE(finds_nothing_when_nothing_is_close) {
  const std::vector<std::string> keys = {"address", "tls"};
  BOOST_TEST(!nearest("port", keys));
  BOOST_TEST(!nearest("", keys));
  BOOST_TEST(!nearest(std::string(5000, 'a'), {std::string(5000, 'a')}));
  // Every two-letter word is two changes away from every other one: that is no guess.
  BOOST_TEST(!nearest("xy", {"ab"}));
}

BOOST_AUTO_TEST_CASE(a_hint_guesses_or_lists_what_exists) {
  BOOST_TEST(spelling_hint("kidn", {"kind", "node"}) == "did you mean 'kind'?");
  BOOST_TEST(spelling_hint("zzzzzz", {"kind", "node"}) == "known are: kind, node");
  BOOST_TEST(spelling_hint("zzzzzz", {}) == "");
  const std::vector<std::string> many(17, "k");
  BOOST_TEST(spelling_hint("zzzzzz", many) ==
             "known are: k, k, k, k, k, k, k, k, k, k, k, k, k, "
             "k, k, k, ...");
}

BOOST_AUTO_TEST_SUITE_END()
