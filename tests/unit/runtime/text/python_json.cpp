// Goal: JSON is written as Python writes it. Method: values whose text was printed by CPython 3
// (json.dumps(json.loads(text), ensure_ascii=False)).
#include "runtime/text/internal/python_json.hpp"

#include <boost/test/unit_test.hpp>

#include "kernels/base/check.hpp"

namespace cedar::text {
namespace {

using nlohmann::ordered_json;

struct sample {
  const char* read;
  const char* written;
};

BOOST_AUTO_TEST_SUITE(json_of_python)

BOOST_AUTO_TEST_CASE(numbers_are_written_as_repr_does) {
  for (const sample& one : std::vector<sample>{
           {"0", "0"},
           {"-0", "0"},
           {"7", "7"},
           {"-12", "-12"},
           {"18446744073709551615", "18446744073709551615"},
           {"-9223372036854775808", "-9223372036854775808"},
           {"1.50", "1.5"},
           {"-0.0", "-0.0"},
           {"0.1", "0.1"},
           {"100.0", "100.0"},
           {"1e15", "1000000000000000.0"},
           {"1e16", "1e+16"},
           {"123456789012345680.0", "1.2345678901234568e+17"},
           {"1234567890123456.7", "1234567890123456.8"},
           {"1e22", "1e+22"},
           {"1.5e300", "1.5e+300"},
           {"1e-4", "0.0001"},
           {"1.25e-4", "0.000125"},
           {"1e-5", "1e-05"},
           {"1.5e-7", "1.5e-07"},
           {"5e-324", "5e-324"},
           {"1.7976931348623157e308", "1.7976931348623157e+308"},
           {"0.30000000000000004", "0.30000000000000004"},
           {"-2.5E+3", "-2500.0"},
           {"12.0e-1", "1.2"},
       }) {
    BOOST_TEST(python_json(ordered_json::parse(one.read)) == one.written, one.read);
  }
}

BOOST_AUTO_TEST_CASE(separators_order_and_scripts_are_kept) {
  BOOST_TEST(python_json(ordered_json::parse(R"({"z":[],"a":{},"天":[1,null,true,{"b":"é"}]})")) ==
             R"({"z": [], "a": {}, "天": [1, null, true, {"b": "é"}]})");
}

BOOST_AUTO_TEST_CASE(strings_are_escaped_where_they_must_be) {
  BOOST_TEST(python_json_string("\"\\/\b\f\n\r\t\x01\x1F\x7F é😀") ==
             "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7F é😀\"");
}

BOOST_AUTO_TEST_CASE(json_is_json_to_its_last_byte) {
  for (const std::string_view text : {"1", " [] ", "\"a\"", "null"})
    BOOST_TEST(is_json(text), text);
  for (const std::string_view text : {"", "1 2", "[", "nul", "'a'", "1e999"})
    BOOST_TEST(!is_json(text), text);
  BOOST_TEST(!is_json(std::string_view("1\0", 2)));
  BOOST_TEST(!is_json(std::string_view("{}\0x", 4)));
}

BOOST_AUTO_TEST_CASE(depth_is_bounded_without_recursion) {
  const auto nested = [](std::size_t levels) {
    return ordered_json::parse(std::string(levels, '[') + std::string(levels, ']'));
  };
  BOOST_TEST(json_levels_within_bounds(nested(json_levels_max)));
  BOOST_TEST(!json_levels_within_bounds(nested(json_levels_max + 1)));
  BOOST_TEST(!json_levels_within_bounds(nested(1'000'000)));
  BOOST_TEST(python_json(nested(3)) == "[[[]]]");
  BOOST_CHECK_THROW(python_json(nested(json_levels_max + 1)), defect);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cedar::text
