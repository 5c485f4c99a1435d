// Goal: what README.md shows of a conversation by curl is what happens. Method: every block with a
// line "$ curl ..." is run in a shell against a server of the topology that the text starts, on a
// port of its own; what was said must be what is shown after the command, without line ends (the
// text wraps them) and without what is different each time (ids, dates).
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/integration/support/program.hpp"

using namespace cedar::test;

namespace {

struct shown {
  std::string command;
  std::string output;
};

/// A command goes on while a quote is open.
bool is_open(const std::string& command) {
  return std::ranges::count(command, '\'') % 2 == 1;
}

std::vector<shown> curls_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  BOOST_REQUIRE(in.is_open());
  std::vector<shown> out;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```") || line.empty()) {
      inside = false;
    } else if (line.starts_with("$ ")) {
      inside = line.starts_with("$ curl ");
      if (inside) out.push_back({line.substr(2), ""});
    } else if (inside && is_open(out.back().command)) {
      out.back().command += "\n" + line;
    } else if (inside) {
      out.back().output += line + "\n";
    }
  }
  return out;
}

/// Without line ends, ids and dates.
std::string kept(std::string text) {
  std::erase(text, '\n');
  text = std::regex_replace(text, std::regex("cmpl-[0-9a-f]{32}"), "cmpl-ID");
  return std::regex_replace(text, std::regex("\"created\":[0-9]+"), "\"created\":DATE");
}

std::string with_port(std::string command, const std::string& address) {
  const std::string standard = "127.0.0.1:8080";
  const std::size_t at = command.find(standard);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, command);
  return command.replace(at, standard.size(), address);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(readme_by_curl)

BOOST_AUTO_TEST_CASE(shows_what_the_server_says) {
  const std::filesystem::path root = CEDAR_SOURCE_DIR;
  program serve(CEDAR_PROGRAM, {"serve", "--topology", root / "configs/topologies/two-process.yaml",
                                "--listen", "127.0.0.1:0"});
  const std::string begin = "listening on http://";
  BOOST_REQUIRE_MESSAGE(serve.wait_output(begin) && serve.wait_output("\n"), serve.errors());
  std::string address = serve.output().substr(begin.size());
  address.resize(address.find('\n'));
  std::size_t count = 0;
  for (const char* file : {"README.md", "tools/cedar/README.md", "runtime/http/README.md"})
    for (const shown& one : curls_of(root / file)) {
      ++count;
      const finished ran =
          run("/bin/bash", {"-c", "set -o pipefail; " + with_port(one.command, address)});
      BOOST_TEST(ran.code == 0, one.command << ": " << ran.errors);
      BOOST_TEST(kept(ran.output) == kept(one.output), file << ": " << one.command << " says\n"
                                                            << ran.output << "but the text has\n"
                                                            << one.output);
    }
  BOOST_TEST(count >= 2U);
}

BOOST_AUTO_TEST_SUITE_END()
