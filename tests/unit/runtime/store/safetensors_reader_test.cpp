// Goal: values come back as they were written, aligned, and damaged files are refused by name.
// Method: files written by another implementation (golden data) and files cut or changed by hand.
#include "runtime/store/safetensors_reader.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>

#include "runtime/store/safetensors_writer.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

using cedar::errc;
using cedar::store::safetensors_reader;
using cedar::test::temporary_folder;

std::filesystem::path golden(const char* name) {
  return std::filesystem::path(CEDAR_TEST_DATA) / "golden" / name;
}

/// A length field, the header and the payload.
std::string file_text(const std::string& header, const std::string& payload) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(header.size() >> (8 * i));
  return text + header + payload;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(safetensors_reader_suite)

BOOST_AUTO_TEST_CASE(reads_golden_values) {
  const auto file = safetensors_reader::open(golden("ops/formats.safetensors"));
  BOOST_REQUIRE(file.has_value());
  // The positive E2M1 magnitudes by code.
  const auto decoded = file->tensor("e2m1.table");
  BOOST_REQUIRE(decoded.has_value());
  const auto values = decoded->as<float>();
  const float magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (std::size_t code = 0; code < 8; ++code) BOOST_TEST(values[code] == magnitudes[code]);
}

BOOST_AUTO_TEST_CASE(aligns_every_tensor_for_its_dtype) {
  const auto file = safetensors_reader::open(golden("tiny-40/golden/trace-0100.safetensors"));
  BOOST_REQUIRE(file.has_value());
  std::size_t misaligned_in_file = 0;
  for (const auto& tensor : file->tensors()) {
    const std::size_t element = element_bytes(tensor.dtype);
    misaligned_in_file += tensor.offset % element != 0;
    const auto bytes = file->bytes(tensor);
    BOOST_REQUIRE(bytes.has_value());
    BOOST_TEST(bytes->size() == tensor.bytes);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(bytes->data()) % element == 0U);
  }
  BOOST_TEST(misaligned_in_file > 0U);  // else this test shows nothing
}

BOOST_AUTO_TEST_CASE(misaligned_tensors_have_the_bytes_of_the_file) {
  const temporary_folder folder;
  const std::string header = R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},)"
                             R"("b":{"dtype":"I16","shape":[2,2],"data_offsets":[1,9]}})";
  std::string payload("\x01", 1);
  payload += std::string("\x10\x00\x20\x00\x30\x00\x40\x00", 8);
  std::string padded = header;
  while (padded.size() % 2 != 0) padded += ' ';
  const auto file = safetensors_reader::open(folder.write("f", file_text(padded, payload)));
  BOOST_REQUIRE(file.has_value());
  const auto whole = file->tensor("b");
  BOOST_REQUIRE(whole.has_value());
  const auto values = whole->as<std::int16_t>();
  BOOST_TEST(values[0] == 0x10);
  BOOST_TEST(values[3] == 0x40);
  const auto rows = file->rows(*file->find("b"), 1, 1);
  BOOST_REQUIRE(rows.has_value());
  BOOST_TEST(rows->size() == 4U);
  BOOST_TEST(std::to_integer<int>((*rows)[0]) == 0x30);
}

BOOST_AUTO_TEST_CASE(asking_for_another_type_is_a_defect) {
  const auto file = safetensors_reader::open(golden("tiny-12/golden/prompt-0003.safetensors"));
  BOOST_REQUIRE(file.has_value());
  const auto tokens = file->tensor("tokens");
  BOOST_REQUIRE(tokens.has_value());
  BOOST_TEST(tokens->as<std::int32_t>().size() == 3U);
  BOOST_CHECK_THROW(tokens->as<float>(), cedar::defect);
}

BOOST_AUTO_TEST_CASE(names_what_is_missing) {
  const temporary_folder folder;
  const auto none = safetensors_reader::open(folder.path() / "none.safetensors");
  BOOST_REQUIRE(!none.has_value());
  BOOST_TEST((none.error().code == errc::not_found));
  BOOST_TEST(none.error().message.find("none.safetensors") != std::string::npos);

  const auto is_folder = safetensors_reader::open(folder.path());
  BOOST_REQUIRE(!is_folder.has_value());
  BOOST_TEST((is_folder.error().code == errc::io));

  const auto file = safetensors_reader::open(golden("ops/swiglu.safetensors"));
  BOOST_REQUIRE(file.has_value());
  const auto tensor = file->tensor("no.such");
  BOOST_REQUIRE(!tensor.has_value());
  BOOST_TEST((tensor.error().code == errc::not_found));
  BOOST_TEST(tensor.error().message.find("no.such") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(refuses_a_file_cut_at_any_place) {
  const temporary_folder folder;
  const std::string whole = cedar::test::read_file(golden("ops/rms_norm.safetensors"));
  BOOST_REQUIRE(safetensors_reader::open(folder.write("whole", whole)).has_value());
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{7}, std::size_t{8}, std::size_t{50},
                                  whole.size() / 2, whole.size() - 1}) {
    const auto cut = safetensors_reader::open(folder.write("cut", whole.substr(0, bytes)));
    BOOST_TEST_CONTEXT(bytes << " bytes") {
      BOOST_REQUIRE(!cut.has_value());
      BOOST_TEST((cut.error().code == errc::malformed));
    }
  }
  BOOST_TEST(!safetensors_reader::open(folder.write("long", whole + "x")).has_value());
}

BOOST_AUTO_TEST_CASE(views_survive_a_move_of_the_reader) {
  auto opened = safetensors_reader::open(golden("ops/swiglu.safetensors"));
  BOOST_REQUIRE(opened.has_value());
  const std::string name = opened->tensors()[0].name;
  const auto view = opened->tensor(name);
  BOOST_REQUIRE(view.has_value());
  const safetensors_reader moved = std::move(*opened);
  BOOST_TEST(moved.find(name) == view->info);
  BOOST_TEST(moved.bytes(*moved.find(name))->data() == view->bytes.data());
}

BOOST_AUTO_TEST_SUITE_END()
