// Goal: one program for machines with and without CUDA: it needs none of its libraries, and says
// what of the machine it can use. Method: its dynamic section, and `cedar devices` as a person runs
// it.
#include <boost/test/unit_test.hpp>
#include <sstream>

#include "tests/integration/support/program.hpp"

using namespace cedar::test;

BOOST_AUTO_TEST_SUITE(devices)

BOOST_AUTO_TEST_CASE(the_program_needs_no_library_of_cuda) {
  const finished read = run("/usr/bin/readelf", {"--dynamic", CEDAR_PROGRAM});
  BOOST_REQUIRE_MESSAGE(read.code == 0, read.errors);
  std::istringstream lines(read.output);
  std::size_t needed = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    ++needed;
    for (const char* library : {"libcud", "libnccl", "libcublas", "cedar-cuda"})
      BOOST_TEST(line.find(library) == std::string::npos, line);
  }
  BOOST_TEST(needed > 5U);
}

BOOST_AUTO_TEST_CASE(every_kind_has_a_line) {
  const finished ran = run(CEDAR_PROGRAM, {"devices"});
  BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.errors);
  for (const char* kind : {"\ncpu ", "\ncuda ", "\nreference "})
    BOOST_TEST(ran.output.find(kind) != std::string::npos, ran.output);
}

BOOST_AUTO_TEST_SUITE_END()
