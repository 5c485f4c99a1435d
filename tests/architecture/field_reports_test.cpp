// Goal: the tests that field-reports.md names exist. Method: every `file: case` and `file` of its
// tables is looked for in the tree.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <sstream>

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

/// What stands between backticks.
std::vector<std::string> quoted_in(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t begin = text.find('`'); begin != std::string::npos;) {
    const std::size_t end = text.find('`', begin + 1);
    BOOST_REQUIRE(end != std::string::npos);
    out.push_back(text.substr(begin + 1, end - begin - 1));
    begin = text.find('`', end + 1);
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(field_reports)

BOOST_AUTO_TEST_CASE(name_tests_that_exist) {
  const std::string tests = CEDAR_SOURCE_DIR "/tests/";
  std::size_t found = 0;
  for (const std::string& quoted : quoted_in(text_of(tests + "field-reports.md"))) {
    const std::size_t colon = quoted.find("_test.cpp: ");
    const bool is_file = quoted.ends_with("_test.cpp");
    if (colon == std::string::npos && !is_file) continue;
    const std::string source = text_of(tests + quoted.substr(0, quoted.find(": ")));
    BOOST_TEST(!source.empty(), "there is no such file: " << quoted);
    if (is_file) continue;
    const std::string name = "_TEST_CASE(" + quoted.substr(quoted.find(": ") + 2);
    const std::size_t at = source.find(name);
    const bool whole = at != std::string::npos &&
                       (source[at + name.size()] == ')' || source[at + name.size()] == ',');
    BOOST_TEST(whole, "there is no such case: " << quoted);
    ++found;
  }
  BOOST_TEST(found > 0U);
}

BOOST_AUTO_TEST_SUITE_END()
