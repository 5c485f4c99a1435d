// Goal: what is written reads back, aligned, and a failed write leaves the old file. Method: a
// round trip through the reader (itself pinned by files of another implementation).
#include "runtime/store/safetensors_writer.hpp"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <string>

#include "runtime/store/safetensors_reader.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

using cedar::kernels::bf16;
using cedar::kernels::dtype;
using namespace cedar::store;

struct fixture {
  cedar::test::temporary_folder folder;
  std::filesystem::path path = folder.path() / "out.safetensors";
  std::vector<float> floats{1.5F, -2.0F, 3.25F, 0.0F, 1e-20F, 7.0F};
  std::vector<bf16> halves{{0x3f80}, {0xc000}, {0x0001}};
  std::vector<std::int8_t> bytes{1, -2, 3};
  std::vector<std::int64_t> numbers{1LL << 40};
  std::vector<tensor_source> tensors{
      {"bytes", dtype::i8, {3}, std::as_bytes(std::span(bytes))},
      {"halves", dtype::bf16, {1, 3}, std::as_bytes(std::span(halves))},
      {"floats", dtype::f32, {2, 3}, std::as_bytes(std::span(floats))},
      {"none", dtype::f32, {0, 4}, {}},
      {"number", dtype::i64, {}, std::as_bytes(std::span(numbers))},
  };
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(safetensors_writer, fixture)

BOOST_AUTO_TEST_CASE(round_trip_keeps_values_shapes_and_metadata) {
  BOOST_REQUIRE(write_safetensors(path, tensors, {{"made_by", "test"}}).has_value());
  const auto file = safetensors_reader::open(path);
  BOOST_REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message));
  BOOST_TEST(file->metadata().at("made_by") == "test");
  for (const tensor_source& source : tensors) {
    const auto view = file->tensor(source.name);
    BOOST_REQUIRE(view.has_value());
    BOOST_TEST((view->info->dtype == source.dtype));
    BOOST_TEST((view->info->shape == source.shape));
    BOOST_TEST(view->info->offset % element_bytes(source.dtype) == 0U);
    BOOST_TEST(std::equal(view->bytes.begin(), view->bytes.end(), source.bytes.begin(),
                          source.bytes.end()));
  }
}

BOOST_AUTO_TEST_CASE(replaces_nothing_but_files) {
  BOOST_REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const auto written = write_safetensors(path, tensors);
  BOOST_REQUIRE(!written.has_value());
  BOOST_TEST(written.error().message.find("no ordinary file") != std::string::npos);
  BOOST_TEST(std::filesystem::is_fifo(path));
}

BOOST_AUTO_TEST_CASE(replaces_a_file_whole_while_the_old_one_stays_readable) {
  BOOST_REQUIRE(write_safetensors(path, tensors).has_value());
  const auto old = safetensors_reader::open(path);
  const auto floats_before = old->tensor("floats");
  BOOST_REQUIRE(write_safetensors(path, std::span(tensors).first(1)).has_value());
  BOOST_TEST(floats_before->as<float>()[2] == 3.25F);
  BOOST_TEST(safetensors_reader::open(path)->tensors().size() == 1U);
  // No temporary file is left.
  const auto files = std::filesystem::directory_iterator(folder.path());
  BOOST_TEST(std::distance(begin(files), end(files)) == 1);
}

BOOST_AUTO_TEST_CASE(a_failed_write_leaves_nothing) {
  std::filesystem::create_directory(path);  // a rename onto a folder fails
  const auto written = write_safetensors(path, tensors);
  BOOST_REQUIRE(!written.has_value());
  BOOST_TEST((written.error().code == cedar::errc::io));
  BOOST_TEST(written.error().message.find("out.safetensors") != std::string::npos);
  const auto files = std::filesystem::directory_iterator(folder.path());
  BOOST_TEST(std::distance(begin(files), end(files)) == 1);
  BOOST_TEST(!write_safetensors(folder.path() / "no" / "such.safetensors", tensors).has_value());
}

BOOST_AUTO_TEST_CASE(a_stopped_write_leaves_the_old_file_alone) {
  BOOST_REQUIRE(write_safetensors(path, tensors).has_value());
  std::stop_source stop;
  BOOST_TEST(write_safetensors(path, tensors, {}, stop.get_token()).has_value());
  stop.request_stop();
  const auto written = write_safetensors(path, std::span(tensors).first(1), {}, stop.get_token());
  BOOST_REQUIRE(!written.has_value());
  BOOST_TEST((written.error().code == cedar::errc::cancelled));
  BOOST_TEST(safetensors_reader::open(path)->tensors().size() == tensors.size());
  const auto files = std::filesystem::directory_iterator(folder.path());
  BOOST_TEST(std::distance(begin(files), end(files)) == 1);
}

BOOST_AUTO_TEST_CASE(contradictory_sources_are_defects) {
  tensors[2].shape = {2, 2};
  BOOST_CHECK_THROW(static_cast<void>(write_safetensors(path, tensors)), cedar::defect);
  tensors[2].shape = {2, 3};
  tensors[1].name = "bytes";
  BOOST_CHECK_THROW(static_cast<void>(write_safetensors(path, tensors)), cedar::defect);
}

BOOST_AUTO_TEST_SUITE_END()
