// Goal: every recorded tensor is compared by somebody, or is listed with the reason why not.
// Method: the names in all files of tests/data/golden against the list of recordings, which must
// leave nothing out and name nothing that is not there; who is named must read what it is named
// for.
#include <fnmatch.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "tests/golden/listing/recordings.hpp"
#include "tests/support/golden.hpp"

using namespace cedar;
using test::recording;

namespace {

const std::filesystem::path folder = std::string(CEDAR_TEST_DATA) + "/golden";

/// Names as golden_file takes them, but for those of weights.
std::vector<std::string> golden_files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    const bool weights = entry.path().filename().string().starts_with("model");
    if (entry.path().extension() == ".safetensors" && !weights) out.push_back(name);
  }
  return out;
}

bool fits(std::string_view pattern, const std::string& name) {
  return fnmatch(std::string(pattern).c_str(), name.c_str(), 0) == 0;
}

std::string text_of(std::string_view source) {
  std::ifstream in(std::string(CEDAR_SOURCE_DIR "/") + std::string(source));
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(golden_listing)

BOOST_AUTO_TEST_CASE(leaves_no_tensor_out_and_names_none_that_is_not_there) {
  std::set<const recording*> used;
  for (const std::string& file : golden_files()) {
    const std::string stem = file.substr(0, file.rfind('.'));
    for (const std::string& tensor : test::golden_file(file).names()) {
      std::size_t found = 0;
      for (const recording& one : test::recordings())
        if (fits(one.files, stem) && fits(one.tensors, tensor)) {
          ++found;
          used.insert(&one);
        }
      BOOST_TEST(found == 1U, file << ": " << tensor << " is listed " << found << " times");
    }
  }
  for (const recording& one : test::recordings())
    BOOST_TEST(used.contains(&one), one.files << ": there is no tensor " << one.tensors);
}

BOOST_AUTO_TEST_CASE(names_tests_that_read_the_tensors) {
  for (const recording& one : test::recordings())
    if (one.test.empty())
      BOOST_TEST(!one.why.empty(), one.files << ": no reason for " << one.tensors);
    else
      BOOST_TEST(text_of(one.test).find(one.why) != std::string::npos,
                 one.test << " does not mention " << one.why);
}

BOOST_AUTO_TEST_SUITE_END()
