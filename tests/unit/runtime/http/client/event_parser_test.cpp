// Goal: the same events, however a stream is cut. Method: one stream with all that the format
// allows, cut at every place, and byte by byte.
#include "runtime/http/client/event_parser.hpp"

#include <boost/test/unit_test.hpp>

using cedar::http::event_parser;

namespace {

const std::string stream =
    ": a comment\n"
    "data: one\n\n"
    "event: other\ndata:two\r\ndata:  lines\r\n\r\n"
    "data\ndata\n\n"
    "dataset: nothing\n\n"
    "data: three\r\r"
    "id: 4\n\n"
    "data: not ended";
const std::vector<std::string> events{"one", "two\n lines", "\n", "three"};

void push(event_parser& parser, std::string_view bytes, std::vector<std::string>& to) {
  const auto some = parser.push(bytes);
  BOOST_REQUIRE(some.has_value());
  to.insert(to.end(), some->begin(), some->end());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(events_of_a_stream)

BOOST_AUTO_TEST_CASE(do_not_depend_on_cuts) {
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    event_parser parser;
    std::vector<std::string> found;
    push(parser, std::string_view(stream).substr(0, cut), found);
    push(parser, std::string_view(stream).substr(cut), found);
    BOOST_TEST(found == events, boost::test_tools::per_element());
    BOOST_TEST(parser.is_inside());
  }
  event_parser parser;
  std::vector<std::string> found;
  for (const char& byte : stream) push(parser, {&byte, 1}, found);
  BOOST_TEST(found == events, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(know_whether_one_is_cut) {
  event_parser parser;
  BOOST_TEST(!parser.is_inside());
  BOOST_TEST(parser.push("data: a\n")->empty());
  BOOST_TEST(parser.is_inside());
  BOOST_TEST(parser.push("\n")->size() == 1U);
  BOOST_TEST(!parser.is_inside());
}

BOOST_AUTO_TEST_CASE(are_bounded) {
  event_parser parser;
  const std::string line = "data: " + std::string(1000, 'x') + "\n";
  bool refused = false;
  for (int i = 0; i < 2000 && !refused; ++i) refused = !parser.push(line).has_value();
  BOOST_TEST(refused);
}

BOOST_AUTO_TEST_SUITE_END()
