// Goal: what is no number, no finite one, or below zero where that means nothing, is a wrong
// command line, named by its option, before anything is opened. Method: every such option with
// each.
#include <boost/test/unit_test.hpp>

#include "tests/integration/support/program.hpp"

using namespace cedar::test;

BOOST_AUTO_TEST_SUITE(number_of_a_command_line)

BOOST_AUTO_TEST_CASE(that_is_none_or_not_finite_or_negative_is_refused) {
  const std::vector<std::string> plan{"plan", "/nowhere.yaml", "--rate"};
  const std::vector<std::string> bench{"bench", "serve", "--url", "http://127.0.0.1:1"};
  const std::vector<std::string> serve{"serve", "-m", "/nowhere"};
  const std::vector<std::string> make{"make-checkpoint", "-o", "/nowhere/m", "--layers", "0",
                                      "--experts",       "8",  "--seed"};
  std::vector<std::vector<std::string>> wrong;
  const auto add = [&](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    wrong.push_back(std::move(words));
  };
  for (const char* number : {"nan", "inf", "-inf", "-1", "1e999", "two"}) {
    add(plan, {number});
    for (const char* option :
         {"--rate", "--seconds", "--timeout-s", "--deadline-s", "--temperature", "--seed"})
      add(bench, {option, number});
    add(make, {number});
    for (const char* option : {"--queue-tokens", "--request-seconds", "--drain-seconds"})
      add(serve, {option, number});
  }
  for (const auto& words : wrong) {
    const finished ran = run(CEDAR_PROGRAM, words);
    BOOST_TEST(ran.code == 2, words.at(words.size() - 2) << " " << words.back());
    BOOST_TEST(contains(ran.errors + ran.output, words.at(words.size() - 2)), ran.errors);
  }
}

BOOST_AUTO_TEST_SUITE_END()
