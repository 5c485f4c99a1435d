// Goal: what a person may write about drafting. Method: words, there and back.
#include "runtime/session/draft_setting.hpp"

#include <boost/test/unit_test.hpp>

using namespace cedar;
using namespace cedar::session;

BOOST_AUTO_TEST_SUITE(a_draft_setting)

BOOST_AUTO_TEST_CASE(is_what_was_written) {
  for (const std::string word : {"off", "auto", "fixed:1", "fixed:4294967295"}) {
    const auto read = draft_setting_of(word);
    BOOST_REQUIRE(read);
    BOOST_TEST(to_string(*read) == word);
  }
  BOOST_TEST(draft_setting_of("off")->tokens == 0U);
  BOOST_TEST(draft_setting_of("fixed:5")->tokens == 5U);
  BOOST_TEST(!draft_setting_of("fixed:5")->automatic);
  BOOST_TEST(draft_setting_of("auto")->automatic);
}

BOOST_AUTO_TEST_CASE(is_refused_if_it_is_no_setting) {
  for (const char* word : {"", "on", "Off", "fixed", "fixed:", "fixed:0", "fixed:-1", "fixed: 1",
                           "fixed:3x", "fixed:4294967296", "auto:3", "Auto"}) {
    const auto read = draft_setting_of(word);
    BOOST_REQUIRE(!read);
    BOOST_TEST((read.error().code == errc::invalid_argument));
    BOOST_TEST(read.error().message.find("fixed:K") != std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()
