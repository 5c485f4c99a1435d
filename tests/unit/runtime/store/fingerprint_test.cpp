// Goal: the fingerprint changes with everything that matters and with nothing else. Method: small
// checkpoints that differ in one respect.
#include "runtime/store/fingerprint.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <string>

#include "runtime/store/safetensors_writer.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

using cedar::kernels::dtype;
using namespace cedar::store;

struct fixture {
  cedar::test::temporary_folder folder;
  std::filesystem::path file = folder.path() / "model.safetensors";
  std::filesystem::path hashes = folder.path() / "model.safetensors.hashes.json";

  void write(const std::string& name, dtype type, std::vector<std::uint64_t> shape,
             const std::string& bytes) const {
    const std::vector<tensor_source> tensors{
        {name, type, std::move(shape), std::as_bytes(std::span(bytes))}};
    BOOST_REQUIRE(write_safetensors(file, tensors).has_value());
  }
  /// Makes the file old enough for its hashes to be kept.
  void settle() const {
    using std::filesystem::last_write_time;
    last_write_time(file, last_write_time(file) - std::chrono::hours(1));
  }
  fingerprint by_content(const char* config = "config") const {
    return content_fingerprint(checkpoint::open(folder.path()).value(), config).value();
  }
  fingerprint by_shape(const char* config = "config") const {
    return shape_fingerprint(checkpoint::open(folder.path()).value(), config);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(fingerprint_suite, fixture)

BOOST_AUTO_TEST_CASE(changes_with_config_name_dtype_shape_and_content) {
  write("a", dtype::i8, {2, 2}, "1234");
  const fingerprint content = by_content();
  const fingerprint shape = by_shape();
  BOOST_TEST((content != shape));
  BOOST_TEST((by_content("other") != content));
  BOOST_TEST((by_shape("other") != shape));

  write("b", dtype::i8, {2, 2}, "1234");
  BOOST_TEST((by_content() != content));
  BOOST_TEST((by_shape() != shape));
  write("a", dtype::u8, {2, 2}, "1234");
  BOOST_TEST((by_content() != content));
  BOOST_TEST((by_shape() != shape));
  write("a", dtype::i8, {4}, "1234");
  BOOST_TEST((by_content() != content));
  BOOST_TEST((by_shape() != shape));
  write("a", dtype::i8, {2, 2}, "1235");
  BOOST_TEST((by_content() != content));
  BOOST_TEST((by_shape() == shape));

  write("a", dtype::i8, {2, 2}, "1234");
  BOOST_TEST((by_content() == content));
}

BOOST_AUTO_TEST_CASE(does_not_depend_on_aliases_or_stored_hashes) {
  write("layers.0.attn.x", dtype::i8, {4}, "1234");
  const fingerprint released = by_content();
  write("model.layers.0.self_attn.x", dtype::i8, {4}, "1234");
  settle();
  BOOST_TEST((by_content() == released));  // computed
  BOOST_TEST(std::filesystem::exists(hashes));
  BOOST_TEST((by_content() == released));  // stored
}

BOOST_AUTO_TEST_CASE(stored_hashes_are_used_while_the_file_is_unchanged) {
  write("a", dtype::i8, {4}, "1234");
  settle();
  const fingerprint before = by_content();
  // A hash that only the stored file can have given.
  std::string text = cedar::test::read_file(hashes);
  const std::size_t digit = text.find("\"a\": \"") + 6;
  text[digit] = text[digit] == '0' ? '1' : '0';
  folder.write("model.safetensors.hashes.json", text);
  BOOST_TEST((by_content() != before));
  // Same size, another time: computed again.
  std::filesystem::last_write_time(
      file, std::filesystem::last_write_time(file) + std::chrono::seconds(5));
  BOOST_TEST((by_content() == before));
}

BOOST_AUTO_TEST_CASE(hashes_of_a_file_that_was_just_written_are_not_kept) {
  write("a", dtype::i8, {4}, "1234");
  static_cast<void>(by_content());
  BOOST_TEST(!std::filesystem::exists(hashes));
}

BOOST_AUTO_TEST_CASE(damaged_stored_hashes_are_replaced) {
  write("a", dtype::i8, {4}, "1234");
  settle();
  const fingerprint before = by_content();
  for (const char* text : {"", "{", "[]", R"({"version":1})", R"({"version":1,"tensors":{}})"}) {
    folder.write("model.safetensors.hashes.json", text);
    BOOST_TEST((by_content() == before));
  }
}

BOOST_AUTO_TEST_CASE(hashing_maps_nothing) {
  write("a", dtype::i8, {4}, "1234");
  const auto opened = checkpoint::open(folder.path()).value();
  BOOST_REQUIRE(content_fingerprint(opened, "config").has_value());
  BOOST_TEST(opened.mapped_bytes() == 0U);
  BOOST_TEST(opened.touched().empty());
}

BOOST_AUTO_TEST_CASE(prints_32_hexadecimal_digits) {
  BOOST_TEST(to_string(fingerprint{0x1, 0xff}) == "000000000000000100000000000000ff");
}

BOOST_AUTO_TEST_SUITE_END()
