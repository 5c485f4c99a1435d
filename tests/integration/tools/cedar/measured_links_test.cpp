// Goal: what links are at the start is held against what the file claims: slower is a warning with
// both numbers, or the end if the file is strict; else nothing is said. Method: the program over
// loopback, with claims that no machine is near to.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/integration/support/topology_text.hpp"

using namespace cedar::test;

namespace {

/// 10 Tbit/s.
const std::string too_fast =
    "links: [{between: [node0, node1], latency_ms: 5000, bandwidth_mbps: 10000000}]\n";
const std::string modest =
    "links: [{between: [node0, node1], latency_ms: 5000, bandwidth_mbps: 0.01}]\n";

/// `cedar run` over two nodes, with these lines in their file.
finished run_with(const std::string& more, const std::vector<std::string>& arguments = {}) {
  topology_options options;
  options.more = more;
  const temporary_folder folder;
  std::vector<std::string> all{"run",
                               "-p",
                               "Once upon a time",
                               "--max-tokens",
                               "3",
                               "-m",
                               checkpoint_of("cedar-tiny").string(),
                               "--topology",
                               folder.write("t.yaml", topology_text(options)).string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run(CEDAR_PROGRAM, all);
}

/// Both directions, each with both numbers.
void check_names_both_numbers(const finished& ran) {
  for (const char* part : {"the link node0 <-> node1 is slower than ", "t.yaml claims: ",
                           "node0 -> node1 ", "node1 -> node0 ", ", claimed 10000000 Mbit/s"})
    BOOST_TEST(contains(ran.errors, part), ran.errors);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(measured_links)

BOOST_AUTO_TEST_CASE(say_nothing_if_they_are_no_slower_than_claimed) {
  for (const std::string& claims : {std::string(), modest, modest + "strict_links: true"}) {
    const finished ran = run_with(claims);
    BOOST_TEST(ran.code == 0);
    BOOST_TEST(ran.output != "");
    BOOST_TEST(ran.errors == "");
  }
}

BOOST_AUTO_TEST_CASE(warn_if_they_are_slower) {
  const finished ran = run_with(too_fast);
  BOOST_TEST(ran.code == 0);
  BOOST_TEST(ran.output == run_with("").output);
  check_names_both_numbers(ran);
  BOOST_TEST(std::count(ran.errors.begin(), ran.errors.end(), '\n') == 1);
}

BOOST_AUTO_TEST_CASE(refuse_to_start_if_the_file_is_strict) {
  const finished ran = run_with(too_fast + "strict_links: true");
  BOOST_TEST(ran.code == 1);
  BOOST_TEST(ran.output == "");
  check_names_both_numbers(ran);
  BOOST_TEST(contains(ran.errors, "(strict_links)"), ran.errors);
}

BOOST_AUTO_TEST_CASE(are_those_that_are_emulated) {
  const finished ran = run_with(
      "links: [{between: [node0, node1], latency_ms: 10, bandwidth_mbps: 1}]\nstrict_links: true",
      {"--emulate-links", "--summary"});
  BOOST_TEST(ran.code == 0);
  BOOST_TEST(!contains(ran.errors, "slower"), ran.errors);
  const std::string line = "node0 <-> node1: tcp/lo, emulated: 10 ms, 1 Mbit/s, round trip ";
  BOOST_TEST(contains(ran.errors, line), ran.errors);
  BOOST_TEST(contains(ran.errors, "Mbit/s there and back: 1 KiB "), ran.errors);
}

BOOST_AUTO_TEST_CASE(that_take_longer_than_a_start_are_named) {
  // A round trip takes 20 s.
  const finished ran = run_with(
      "links: [{between: [node0, node1], latency_ms: 10000}]\ndeadlines_ms: {start: 12000}",
      {"--emulate-links"});
  BOOST_TEST(ran.code == 1);
  BOOST_TEST(ran.output == "");
  BOOST_TEST(contains(ran.errors, "node 'node0' "), ran.errors);
  BOOST_TEST(contains(ran.errors, " its link to node 'node1'"), ran.errors);
}

BOOST_AUTO_TEST_CASE(are_told_in_detail_to_whoever_asks) {
  const finished ran = run_with("", {"--verbose"});
  BOOST_TEST(ran.code == 0);
  BOOST_TEST(contains(ran.errors, "cedar: link node0 <-> node1: tcp/lo, round trip "), ran.errors);
}

BOOST_AUTO_TEST_SUITE_END()
