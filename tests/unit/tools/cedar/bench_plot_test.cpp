// Goal: a plot shows every point where its logarithms belong. Method: a document is read back by a
// pattern; a power law must be a straight line, a constant a level one.
#include "tools/cedar/bench_plot.hpp"

#include <boost/test/unit_test.hpp>
#include <regex>
#include <sstream>

#include "kernels/base/check.hpp"

using namespace cedar::tools;

namespace {

using points = std::vector<std::pair<double, double>>;

std::vector<points> polylines(const std::string& svg) {
  std::vector<points> out;
  const std::regex line("<polyline [^>]*points=\"([^\"]*)\"/>");
  for (std::sregex_iterator at(svg.begin(), svg.end(), line), end; at != end; ++at) {
    std::istringstream in((*at)[1].str());
    points found;
    double x = 0, y = 0;
    for (char comma = 0; in >> x >> comma >> y;) found.emplace_back(x, y);
    out.push_back(std::move(found));
  }
  return out;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t out = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++out;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bench_plot)

BOOST_AUTO_TEST_CASE(powers_are_straight_and_constants_level) {
  const std::string svg = to_svg({"title",
                                  "x",
                                  "y",
                                  {{"linear", {{4096, 10}, {65536, 160}, {1048576, 2560}}},
                                   {"flat", {{4096, 50}, {65536, 50}, {1048576, 50}}}}});
  const auto lines = polylines(svg);
  BOOST_TEST_REQUIRE(lines.size() == 2U);
  for (const points& line : lines) {
    BOOST_TEST_REQUIRE(line.size() == 3U);
    BOOST_TEST(line[0].first < line[1].first);
    // Equal factors are equal distances; coordinates have a tenth.
    BOOST_TEST(std::abs(line[1].first - line[0].first - (line[2].first - line[1].first)) < 0.15);
    BOOST_TEST(std::abs(line[1].second - line[0].second - (line[2].second - line[1].second)) <
               0.15);
  }
  BOOST_TEST(lines[0][2].second < lines[0][0].second);  // upwards is less
  BOOST_TEST(lines[1][2].second == lines[1][0].second);
  BOOST_TEST(count(svg, "<circle ") == 6U);
  BOOST_TEST(count(svg, ">4 k</text>") == 1U);
  BOOST_TEST(count(svg, ">1 M</text>") == 1U);
  BOOST_TEST(count(svg, ">10000</text>") == 1U);
  BOOST_TEST(svg.ends_with("</svg>\n"));
}

BOOST_AUTO_TEST_CASE(names_are_text_and_one_point_is_enough) {
  const std::string svg = to_svg({"a < b & c", "x", "y", {{"l > m", {{16, 1}}}, {"none", {}}}});
  BOOST_TEST(count(svg, "a &lt; b &amp; c") == 1U);
  BOOST_TEST(count(svg, "l &gt; m") == 1U);
  BOOST_TEST(polylines(svg).size() == 1U);
}

BOOST_AUTO_TEST_CASE(nothing_and_zero_have_no_place) {
  BOOST_CHECK_THROW(to_svg({"", "", "", {}}), cedar::defect);
  BOOST_CHECK_THROW(to_svg({"", "", "", {{"a", {{1, 0}}}}}), cedar::defect);
}

BOOST_AUTO_TEST_SUITE_END()
