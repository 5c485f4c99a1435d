// Goal: reports say what was measured, come back from JSON unchanged, and two of them are compared
// row by row, or not at all if they are of different kinds. Method: values counted by hand; a round
// trip; a planted change beside planted noise.
#include "tools/cedar/bench_report.hpp"

#include <boost/test/unit_test.hpp>

using namespace cedar::tools;

namespace {

bench_row row(std::string name, double low, double median, double high) {
  return {std::move(name), {9, median, low, high}, {{"bytes", 2 * median}}, {{"bound", "memory"}}};
}

bench_report report(std::vector<bench_row> rows) {
  return {"kernels", {{"processor", "any"}}, std::move(rows)};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bench_reports)

BOOST_AUTO_TEST_CASE(a_spread_is_made_of_measured_values) {
  const spread found = spread_of({7, 1, 9, 3, 5, 2, 8, 4, 10, 6});
  BOOST_TEST(found.count == 10U);
  BOOST_TEST(found.median == 5);
  BOOST_TEST(found.low == 1);
  BOOST_TEST(found.high == 9);
  BOOST_TEST(found.relative() == 0.8);
  BOOST_TEST(spread_of({}).relative() == 0);
}

BOOST_AUTO_TEST_CASE(json_brings_a_report_back) {
  const bench_report before = report({row("a", 1, 1.1, 1.25), row("b \"quoted\"", 2, 3, 4)});
  const auto after = parse_report(to_json(before).dump(), "text");
  BOOST_TEST_REQUIRE(after.has_value());
  BOOST_TEST(after->kind == "kernels");
  BOOST_TEST((after->settings == before.settings));
  BOOST_TEST_REQUIRE(after->rows.size() == 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const bench_row& found = after->rows[i];
    const bench_row& wanted = before.rows[i];
    BOOST_TEST(found.name == wanted.name);
    BOOST_TEST(found.time_us.count == wanted.time_us.count);
    BOOST_TEST(found.time_us.median == wanted.time_us.median);
    BOOST_TEST(found.time_us.low == wanted.time_us.low);
    BOOST_TEST(found.time_us.high == wanted.time_us.high);
    BOOST_TEST((found.numbers == wanted.numbers));
    BOOST_TEST((found.words == wanted.words));
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_report_is_refused_by_name) {
  for (const char* text : {"", "[]", "{}", R"({"bench": "kernels", "settings": {}})",
                           R"({"bench": "kernels", "settings": {}, "rows": [{"name": "a"}]})",
                           R"({"bench": 1, "settings": {}, "rows": []})"}) {
    const auto read = parse_report(text, "file.json");
    BOOST_TEST_REQUIRE(!read.has_value(), text);
    BOOST_TEST((read.error().code == cedar::errc::malformed));
    BOOST_TEST(read.error().message.starts_with("file.json"));
  }
}

BOOST_AUTO_TEST_CASE(a_change_is_told_from_noise) {
  const auto found = compare_reports(
      report({row("same", 9, 10, 11), row("slower", 9, 10, 11), row("gone", 1, 1, 1)}),
      report({row("new", 1, 1, 1), row("slower", 19, 20, 21), row("same", 10, 12, 13)}));
  BOOST_TEST_REQUIRE(found.has_value());
  BOOST_TEST_REQUIRE(found->rows.size() == 2U);
  BOOST_TEST(found->rows[0].name == "same");
  BOOST_TEST(found->rows[0].ratio == 1.2);
  BOOST_TEST(found->rows[0].noise);
  BOOST_TEST(found->rows[1].name == "slower");
  BOOST_TEST(found->rows[1].before_us == 10);
  BOOST_TEST(found->rows[1].after_us == 20);
  BOOST_TEST(found->rows[1].ratio == 2);
  BOOST_TEST(!found->rows[1].noise);
  BOOST_TEST((found->only_before == std::vector<std::string>{"gone"}));
  BOOST_TEST((found->only_after == std::vector<std::string>{"new"}));
  BOOST_TEST(found->differing.empty());
}

BOOST_AUTO_TEST_CASE(a_change_for_the_better_is_none_of_noise_either) {
  const auto found = compare_reports(report({row("a", 19, 20, 21)}), report({row("a", 9, 10, 11)}));
  BOOST_TEST_REQUIRE(found.has_value());
  BOOST_TEST(found->rows[0].ratio == 0.5);
  BOOST_TEST(!found->rows[0].noise);
}

BOOST_AUTO_TEST_CASE(settings_that_differ_are_named_and_kinds_refused) {
  bench_report other = report({});
  other.settings = {{"processor", "another"}, {"isa", "avx2"}};
  const auto found = compare_reports(report({}), other);
  BOOST_TEST_REQUIRE(found.has_value());
  BOOST_TEST((found->differing ==
              std::vector<std::string>{"isa: not given, avx2", "processor: any, another"}));
  other.kind = "decode";
  const auto refused = compare_reports(report({}), other);
  BOOST_TEST_REQUIRE(!refused.has_value());
  BOOST_TEST((refused.error().code == cedar::errc::mismatch));
  BOOST_TEST(refused.error().message == "bench kernels cannot be compared with bench decode");
}

BOOST_AUTO_TEST_CASE(this_machine_has_a_name) {
  const auto settings = machine_settings();
  BOOST_TEST(!settings.at("processor").empty());
  BOOST_TEST(std::stoi(settings.at("processors")) >= 1);
  BOOST_TEST(settings.at("date").size() == std::string("2026-12-01T00:00:00Z").size());
}

BOOST_AUTO_TEST_SUITE_END()
