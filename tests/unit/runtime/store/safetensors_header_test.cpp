// Goal: no header that lies about its file is accepted, and the message names file and tensor.
// Method: headers written by hand, each wrong in one way.
#include "runtime/store/safetensors_header.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

namespace {

using cedar::errc;
using cedar::store::parse_safetensors_header;

/// A file whose payload has `payload_bytes`.
auto parse(const std::string& header, std::uint64_t payload_bytes) {
  return parse_safetensors_header(header, 8 + header.size() + payload_bytes, "f.safetensors");
}

void expect_refused(const std::string& header, std::uint64_t payload_bytes,
                    const std::string& part_of_message) {
  BOOST_TEST_CONTEXT(header.substr(0, 200)) {
    const auto parsed = parse(header, payload_bytes);
    BOOST_REQUIRE(!parsed.has_value());
    BOOST_TEST((parsed.error().code == errc::malformed));
    BOOST_TEST_CONTEXT(parsed.error().message) {
      BOOST_TEST(parsed.error().message.find("f.safetensors") != std::string::npos);
      BOOST_TEST(parsed.error().message.find(part_of_message) != std::string::npos);
    }
  }
}

/// A header with one tensor "a" whose entry is `fields`.
std::string entry(const std::string& fields) {
  return R"({"a":{)" + fields + "}}";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(safetensors_header)

BOOST_AUTO_TEST_CASE(accepts_tensors_in_any_order_metadata_and_padding) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]},)"
      R"("a":{"shape":[2],"dtype":"BF16","data_offsets":[0,4]},)"
      R"("s":{"dtype":"I8","shape":[],"data_offsets":[28,29]},)"
      R"("z":{"dtype":"I64","shape":[0,7],"data_offsets":[28,28]}}   )";
  const auto parsed = parse(header, 29);
  BOOST_REQUIRE(parsed.has_value());
  BOOST_REQUIRE(parsed->tensors.size() == 4U);
  BOOST_TEST(parsed->tensors[0].name == "a");
  BOOST_TEST((parsed->tensors[0].dtype == cedar::kernels::dtype::bf16));
  BOOST_TEST(parsed->tensors[0].offset == 8 + header.size());
  BOOST_TEST(parsed->tensors[1].name == "b");
  BOOST_TEST(parsed->tensors[1].bytes == 24U);
  BOOST_TEST(parsed->tensors[1].offset == 8 + header.size() + 4);
  BOOST_TEST(parsed->tensors[2].name == "z");
  BOOST_TEST(parsed->tensors[3].shape.empty());
  BOOST_TEST(parsed->metadata.at("format") == "pt");
}

BOOST_AUTO_TEST_CASE(accepts_an_empty_file) {
  BOOST_TEST(parse("{}", 0).has_value());
}

BOOST_AUTO_TEST_CASE(refuses_what_is_not_one_json_object) {
  expect_refused("", 0, "does not begin with {");
  expect_refused(" {}", 0, "does not begin with {");
  expect_refused("[]", 0, "does not begin with {");
  expect_refused("{", 0, "not JSON");
  expect_refused("{}x", 0, "not JSON");
  expect_refused("{\"a\xff\":1}", 0, "not JSON");
  expect_refused(R"({"a":1e999})", 0, "not JSON");
  expect_refused("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}", 0,
                 "nesting");
}

BOOST_AUTO_TEST_CASE(refuses_names_and_fields_that_occur_twice) {
  const std::string good = R"({"dtype":"I8","shape":[1],"data_offsets":[0,1]})";
  expect_refused(R"({"a":)" + good + R"(,"a":)" + good + "}", 1, "\"a\" occurs twice");
  expect_refused(entry(R"("dtype":"I8","dtype":"U8","shape":[1],"data_offsets":[0,1])"), 1,
                 "\"dtype\" occurs twice");
}

BOOST_AUTO_TEST_CASE(refuses_incomplete_or_unknown_fields_by_tensor_name) {
  expect_refused(R"({"a":[]})", 0, "\"a\"");
  expect_refused(entry(R"("dtype":"I8","shape":[1])"), 1, "\"a\": dtype, shape and data_offsets");
  expect_refused(entry(R"("dtype":"I8","shape":[1],"data_offsets":[0,1],"x":1)"), 1, "\"x\"");
  expect_refused(entry(R"("dtype":3,"shape":[1],"data_offsets":[0,1])"), 1, "not a string");
  expect_refused(entry(R"("dtype":"F16","shape":[1],"data_offsets":[0,2])"), 2, "F16");
}

BOOST_AUTO_TEST_CASE(refuses_impossible_shapes) {
  expect_refused(entry(R"("dtype":"I8","shape":1,"data_offsets":[0,1])"), 1, "shape");
  expect_refused(entry(R"("dtype":"I8","shape":[-1],"data_offsets":[0,1])"), 1, "shape");
  expect_refused(entry(R"("dtype":"I8","shape":[1.0],"data_offsets":[0,1])"), 1, "shape");
  expect_refused(entry(R"("dtype":"I8","shape":[18446744073709551616],"data_offsets":[0,1])"), 1,
                 "shape");
  expect_refused(entry(R"("dtype":"I8","shape":[4294967296,4294967296],"data_offsets":[0,0])"), 0,
                 "overflows");
  // The product fits, the bytes do not: 2^62 floats.
  expect_refused(entry(R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0])"), 0,
                 "overflows");
}

BOOST_AUTO_TEST_CASE(refuses_offsets_outside_of_the_file) {
  expect_refused(entry(R"("dtype":"I8","shape":[4],"data_offsets":[0,4])"), 3, "truncated");
  expect_refused(entry(R"("dtype":"I8","shape":[4],"data_offsets":[4,0])"), 4, "data_offsets");
  expect_refused(entry(R"("dtype":"I8","shape":[4],"data_offsets":[0,4,8])"), 4, "data_offsets");
  expect_refused(entry(R"("dtype":"I8","shape":[1],"data_offsets":[18446744073709551615,0])"), 4,
                 "data_offsets");
}

BOOST_AUTO_TEST_CASE(refuses_a_size_that_is_not_the_product_of_the_shape) {
  expect_refused(entry(R"("dtype":"F32","shape":[2,2],"data_offsets":[0,12])"), 12, "needs 16");
}

BOOST_AUTO_TEST_CASE(refuses_overlaps_gaps_and_bytes_of_no_tensor) {
  const auto two = [](const char* second_offsets) {
    return std::string(R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},)") +
           R"("b":{"dtype":"I8","shape":[4],"data_offsets":)" + second_offsets + "}}";
  };
  expect_refused(two("[2,6]"), 6, "\"b\": overlaps");
  expect_refused(two("[0,4]"), 4, "\"b\": overlaps");
  expect_refused(two("[5,9]"), 9, "\"b\": leaves a gap");
  expect_refused(two("[4,8]"), 10, "2 bytes after the last tensor");
}

BOOST_AUTO_TEST_CASE(refuses_metadata_that_is_not_text) {
  expect_refused(R"({"__metadata__":[]})", 0, "__metadata__");
  expect_refused(R"({"__metadata__":{"n":1}})", 0, "\"n\"");
}

BOOST_AUTO_TEST_CASE(refuses_a_length_field_that_exceeds_the_file) {
  using cedar::store::check_header_length;
  BOOST_TEST(check_header_length(10, 18, "f").has_value());
  BOOST_TEST(!check_header_length(11, 18, "f").has_value());
  BOOST_TEST(!check_header_length(0, 7, "f").has_value());
  BOOST_TEST(!check_header_length(~std::uint64_t{0}, ~std::uint64_t{0}, "f").has_value());
}

BOOST_AUTO_TEST_SUITE_END()
