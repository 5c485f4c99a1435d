// Goal: exactly the asked-for pages are mapped, each once. Method: a file of known bytes, and the
// kernel's own list of mappings.
#include "runtime/store/mapped_file.hpp"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <string>

#include "kernels/base/check.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

using cedar::store::mapped_file;

const std::uint64_t page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));

/// How many mappings of `path` this process has.
std::size_t kernel_mappings(const std::filesystem::path& path) {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.ends_with(path.string());
  return count;
}

/// `pages` pages and a half; byte i is i mod 251.
std::string content(std::uint64_t pages) {
  std::string text(pages * page + page / 2, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i % 251);
  return text;
}

struct fixture {
  cedar::test::temporary_folder folder;
  std::filesystem::path path = folder.write("f", content(10));
  std::unique_ptr<mapped_file> file = mapped_file::open(path).value();

  void expect_bytes(std::uint64_t offset, std::uint64_t count) const {
    const auto mapped = file->map(offset, count);
    BOOST_REQUIRE(mapped.has_value());
    BOOST_REQUIRE(mapped->size() == count);
    for (std::uint64_t i = 0; i < count; ++i)
      BOOST_REQUIRE(std::to_integer<std::uint64_t>((*mapped)[i]) == (offset + i) % 251);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(mapped_file_suite, fixture)

BOOST_AUTO_TEST_CASE(maps_nothing_until_asked) {
  BOOST_TEST(file->mapped_bytes() == 0U);
  BOOST_TEST(kernel_mappings(path) == 0U);
  BOOST_TEST(file->map(5, 0)->size() == 0U);
  BOOST_TEST(kernel_mappings(path) == 0U);
}

BOOST_AUTO_TEST_CASE(maps_the_pages_of_the_range_only) {
  expect_bytes(3 * page + 1, 10);
  BOOST_TEST(file->mapped_bytes() == page);
  expect_bytes(6 * page - 1, 2);
  BOOST_TEST(file->mapped_bytes() == 3 * page);
  BOOST_TEST(kernel_mappings(path) == 2U);
}

BOOST_AUTO_TEST_CASE(neighbours_merge_and_overlaps_count_once) {
  expect_bytes(2 * page, page);
  expect_bytes(4 * page, page);
  expect_bytes(7 * page, page);
  BOOST_TEST(file->mapped_bytes() == 3 * page);
  expect_bytes(page / 2, 9 * page);  // pages 0 to 9 over three islands
  BOOST_TEST(file->mapped_bytes() == 10 * page);
  BOOST_TEST(kernel_mappings(path) == 1U);
  expect_bytes(0, file->bytes());
  BOOST_TEST(file->mapped_bytes() == 11 * page);
  BOOST_TEST(kernel_mappings(path) == 1U);
}

BOOST_AUTO_TEST_CASE(addresses_stay_when_more_is_mapped) {
  const auto before = file->map(5 * page, 100);
  expect_bytes(0, file->bytes());
  BOOST_TEST(file->map(5 * page, 100)->data() == before->data());
}

BOOST_AUTO_TEST_CASE(a_range_outside_of_the_file_is_a_defect) {
  BOOST_CHECK_THROW(static_cast<void>(file->map(file->bytes(), 1)), cedar::defect);
  BOOST_CHECK_THROW(static_cast<void>(file->map(1, ~std::uint64_t{0})), cedar::defect);
}

BOOST_AUTO_TEST_CASE(unmaps_at_the_end) {
  expect_bytes(0, 10);
  file.reset();
  BOOST_TEST(kernel_mappings(path) == 0U);
}

BOOST_AUTO_TEST_CASE(read_maps_nothing_and_notices_a_shrunken_file) {
  std::string target(100, '\0');
  const auto bytes = std::as_writable_bytes(std::span(target));
  BOOST_TEST(file->read(page, bytes).has_value());
  BOOST_TEST(target[0] == static_cast<char>(page % 251));
  BOOST_TEST(file->mapped_bytes() == 0U);
  std::filesystem::resize_file(path, page);
  const auto read = file->read(page - 50, bytes);
  BOOST_REQUIRE(!read.has_value());
  BOOST_TEST((read.error().code == cedar::errc::io));
}

BOOST_AUTO_TEST_SUITE_END()
