// Goal: a folder's tensors are found whatever their file or alias, only asked-for bytes are mapped,
// and an index that disagrees with its shards is refused. Method: golden checkpoints, and small
// folders written here.
#include "runtime/store/checkpoint.hpp"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <string>

#include "runtime/store/safetensors_writer.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

using cedar::errc;
using cedar::kernels::dtype;
using namespace cedar::store;

std::filesystem::path golden(const char* name) {
  return std::filesystem::path(CEDAR_TEST_DATA) / "golden" / name;
}

/// A folder with shards 1.safetensors (a, b) and 2.safetensors (c), eight bytes each.
struct shards {
  cedar::test::temporary_folder folder;
  std::string bytes = "12345678";

  shards() {
    write("1.safetensors", {"a", "b"});
    write("2.safetensors", {"c"});
    index(R"({"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors"})");
  }

  void write(const char* file, const std::vector<std::string>& names) const {
    std::vector<tensor_source> tensors;
    for (const std::string& name : names)
      tensors.push_back({name, dtype::i8, {2, 4}, std::as_bytes(std::span(bytes))});
    BOOST_REQUIRE(write_safetensors(folder.path() / file, tensors).has_value());
  }
  void index(const std::string& weight_map) const {
    folder.write("model.safetensors.index.json", R"({"weight_map":)" + weight_map + "}");
  }
  void expect_refused(errc code, const std::string& part_of_message) const {
    const auto opened = checkpoint::open(folder.path());
    BOOST_REQUIRE(!opened.has_value());
    BOOST_TEST_CONTEXT(opened.error().message) {
      BOOST_TEST((opened.error().code == code));
      BOOST_TEST(opened.error().message.find(part_of_message) != std::string::npos);
    }
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint_suite)

BOOST_AUTO_TEST_CASE(finds_tensors_of_all_shards) {
  const auto opened = checkpoint::open(golden("tiny-40"));
  BOOST_REQUIRE(opened.has_value());
  BOOST_TEST(opened->files().size() == 3U);
  const auto sinks = opened->tensor("layers.39.attn.attn_sink");
  BOOST_REQUIRE(sinks.has_value());
  BOOST_TEST(sinks->as<float>().size() == 4U);
  BOOST_TEST(opened->find("layers.40.attn.attn_sink") == nullptr);
  BOOST_TEST((opened->tensor("nothing").error().code == errc::not_found));
}

BOOST_AUTO_TEST_CASE(maps_no_tensor_that_nobody_asked_for) {
  const auto opened = checkpoint::open(golden("tiny-40"));
  BOOST_REQUIRE(opened.has_value());
  BOOST_TEST(opened->touched().empty());
  BOOST_TEST(opened->mapped_bytes() == 0U);
  const auto experts = opened->tensor("layers.3.ffn.experts.5.w1.weight");
  BOOST_REQUIRE(experts.has_value());
  BOOST_REQUIRE(opened->touched().size() == 1U);
  BOOST_TEST(opened->touched()[0] == "layers.3.ffn.experts.5.w1.weight");
  // Its own pages: at most one more than its bytes fill.
  BOOST_TEST(opened->mapped_bytes() <= (experts->bytes.size() / 4096 + 2) * 4096);
  std::size_t mapped_files = 0;
  for (const auto& file : opened->files()) mapped_files += file.mapped_bytes() != 0;
  BOOST_TEST(mapped_files == 1U);
}

BOOST_FIXTURE_TEST_CASE(rows_are_a_slice_of_the_tensor, shards) {
  const auto opened = checkpoint::open(folder.path());
  BOOST_REQUIRE(opened.has_value());
  const auto rows = opened->rows(*opened->find("b"), 1, 1);
  BOOST_REQUIRE(rows.has_value());
  BOOST_TEST(std::string(reinterpret_cast<const char*>(rows->data()), rows->size()) == "5678");
  BOOST_TEST(opened->touched()[0] == "b");
  BOOST_CHECK_THROW(static_cast<void>(opened->rows(*opened->find("b"), 1, 2)), cedar::defect);
}

BOOST_FIXTURE_TEST_CASE(aliases_are_found_under_released_names, shards) {
  write("1.safetensors", {"model.layers.0.self_attn.wkv.weight_scale_inv", "b"});
  index(R"({"model.layers.0.self_attn.wkv.weight_scale_inv":"1.safetensors","b":"1.safetensors",)"
        R"("c":"2.safetensors"})");
  const auto opened = checkpoint::open(folder.path());
  BOOST_REQUIRE(opened.has_value());
  BOOST_TEST(opened->find("layers.0.attn.wkv.scale") != nullptr);
}

BOOST_FIXTURE_TEST_CASE(two_spellings_of_one_name_are_refused, shards) {
  write("1.safetensors", {"model.c", "b"});
  index(R"({"model.c":"1.safetensors","b":"1.safetensors","c":"2.safetensors"})");
  expect_refused(errc::malformed, "\"c\"");
}

BOOST_FIXTURE_TEST_CASE(a_shard_that_is_elsewhere_is_listed, shards) {
  std::filesystem::remove(folder.path() / "1.safetensors");
  const auto opened = checkpoint::open(folder.path());
  BOOST_REQUIRE(opened.has_value());
  BOOST_REQUIRE(opened->absent().size() == 2U);
  BOOST_TEST(opened->absent()[1].name == "b");
  BOOST_TEST(opened->absent()[1].file == "1.safetensors");
  BOOST_TEST(opened->tensors().size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(index_and_shards_must_agree, shards) {
  index(R"({"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors","d":"2.safetensors"})");
  expect_refused(errc::malformed, "\"d\"");
  index(R"({"a":"1.safetensors","c":"2.safetensors"})");
  expect_refused(errc::malformed, "\"b\"");
}

BOOST_FIXTURE_TEST_CASE(an_index_may_not_lead_out_of_its_folder, shards) {
  for (const char* file : {"../1.safetensors", "/etc/passwd", "..", ""}) {
    index(std::string(R"({"a":")") + file + R"("})");
    expect_refused(errc::malformed, "\"a\"");
  }
  index(R"({"a":7})");
  expect_refused(errc::malformed, "\"a\"");
  index("[]");
  expect_refused(errc::malformed, "weight_map");
}

BOOST_FIXTURE_TEST_CASE(a_damaged_shard_is_named, shards) {
  std::filesystem::resize_file(folder.path() / "2.safetensors", 60);
  expect_refused(errc::malformed, "2.safetensors");
}

BOOST_FIXTURE_TEST_CASE(single_file_and_index_together_are_refused, shards) {
  write("model.safetensors", {"a"});
  expect_refused(errc::mismatch, "both");
}

BOOST_AUTO_TEST_CASE(a_folder_without_weights_is_named) {
  const auto opened =
      checkpoint::open(std::filesystem::path(CEDAR_SOURCE_DIR) / "configs/models/released");
  BOOST_REQUIRE(!opened.has_value());
  BOOST_TEST((opened.error().code == errc::not_found));
}

BOOST_FIXTURE_TEST_CASE(bytes_of_a_foreign_tensor_are_a_defect, shards) {
  const auto opened = checkpoint::open(folder.path());
  BOOST_REQUIRE(opened.has_value());
  const tensor_info copy = *opened->find("a");
  BOOST_CHECK_THROW(static_cast<void>(opened->bytes(copy)), cedar::defect);
}

BOOST_AUTO_TEST_SUITE_END()
