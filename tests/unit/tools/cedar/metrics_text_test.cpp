// Goal: what /metrics says is read as it is meant. Method: texts made by hand, good and bad.
#include "tools/cedar/metrics_text.hpp"

#include <boost/test/unit_test.hpp>

using cedar::tools::metrics_text;

BOOST_AUTO_TEST_SUITE(text_of_metrics)

BOOST_AUTO_TEST_CASE(is_read) {
  const auto read = metrics_text::parse(
      "# HELP a some help\n# TYPE a counter\n"
      "a{route=\"/v1/x\",status=\"200\"} 3\n"
      "a{route=\"say \\\"so\\\\\\n{}\",status=\"429\",} 4 1700000000\n"
      "\nb 1.5e-3\nab 7\nlast +Inf");
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST(read->sum("a") == 7);
  BOOST_TEST(read->sum("b") == 0.0015);
  BOOST_TEST(read->sum("ab") == 7);
  BOOST_TEST(read->sum("nothing") == 0);
  BOOST_TEST(read->sum("last") > 1e308);
  const auto samples = read->of("a");
  BOOST_REQUIRE_EQUAL(samples.size(), 2U);
  BOOST_TEST(samples[0].labels.at("status") == "200");
  BOOST_TEST(samples[1].labels.at("route") == "say \"so\\\n{}");
  BOOST_TEST(samples[1].labels.at("status") == "429");
  BOOST_TEST(samples[1].value == 4);
}

BOOST_AUTO_TEST_CASE(that_is_none_is_refused_with_its_line) {
  for (const char* line : {"a", "a ", "{x=\"1\"} 2", "a{x=\"1\" 2", "a{x=\"1} 2", "a{x=1} 2",
                           "a{x=\"1\"} two", "a 2x", "<html>"}) {
    const auto read = metrics_text::parse("good 1\n" + std::string(line));
    BOOST_REQUIRE_MESSAGE(!read.has_value(), line);
    BOOST_TEST(read.error().message.find("line 2") != std::string::npos, read.error().message);
  }
}

BOOST_AUTO_TEST_SUITE_END()
