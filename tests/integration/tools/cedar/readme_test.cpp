// Goal: what configs/topologies/README.md shows is what the program prints.
// Method: every line "$ cedar plan ..." in a block of the text is run in a shell at the root of the
// source tree; the lines after it must be its output, byte for byte.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "tests/integration/support/program.hpp"

using namespace cedar::test;

namespace {

struct shown {
  std::string command;
  std::string output;
};

std::vector<shown> commands_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  BOOST_REQUIRE(in.is_open());
  std::vector<shown> out;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      inside = false;
    } else if (line.starts_with("$ cedar plan ")) {
      out.push_back({line.substr(2), ""});
      inside = true;
    } else if (inside) {
      out.back().output += line + "\n";
    }
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(topologies_readme)

BOOST_AUTO_TEST_CASE(shows_what_the_program_prints) {
  const auto blocks = commands_of(CEDAR_SOURCE_DIR "/configs/topologies/README.md");
  BOOST_TEST(blocks.size() >= 4U);
  const std::string setting = "cd '" CEDAR_SOURCE_DIR "' && PATH='" +
                              std::filesystem::path(CEDAR_PROGRAM).parent_path().string() +
                              "':$PATH && ";
  for (const shown& block : blocks) {
    const finished done = run("/bin/sh", {"-c", setting + "{ " + block.command + "; } 2>&1"});
    BOOST_TEST(done.output == block.output, block.command << " prints\n"
                                                          << done.output << "but the text says\n"
                                                          << block.output);
  }
}

BOOST_AUTO_TEST_SUITE_END()
