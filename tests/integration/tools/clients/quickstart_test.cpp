// Goal: whoever interrupts tools/quickstart, at whatever moment, finds nothing of it left. Method:
// the script without its build, over the program under test; the signal goes where a terminal sends
// it, to every process of the script's group.
#include <signal.h>
#include <unistd.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <set>

#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace cedar::test;
namespace data = boost::unit_test::data;

namespace {

/// `text` with every `from`, of which there must be one, replaced by `to`.
std::string with(std::string text, const std::string& from, const std::string& to) {
  BOOST_REQUIRE_MESSAGE(contains(text, from), from);
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// The script over the program under test, with an answer that goes on for long.
std::string script_text(const std::filesystem::path& files) {
  std::string text = read_file(CEDAR_SOURCE_DIR "/tools/quickstart");
  text = with(text, R"(cd "$(dirname "${BASH_SOURCE[0]}")/..")", "cd '" CEDAR_SOURCE_DIR "'");
  text = with(text, "\ntools/build cedar\n", "\nexport TMPDIR='" + files.string() + "'\n");
  text = with(text, "max_tokens: 200", "max_tokens: 1000, ignore_eos: true");
  return with(text, "build/release/cedar", CEDAR_PROGRAM);
}

struct quickstart {
  explicit quickstart(const std::vector<std::string>& more = {})
      : script("/bin/bash", words(more)) {}

  std::vector<std::string> words(std::vector<std::string> more) const {
    const auto file = folder.write("quickstart", script_text(files.path()));
    more.insert(more.begin(), file.string());
    return more;
  }
  /// As the keys of its terminal do; those born meanwhile are told, too.
  void interrupt(int number) {
    std::set<pid_t> told;
    for (bool more = true; more;) {
      more = false;
      for (const pid_t pid : script.processes()) {
        if (::getpgid(pid) != ::getpgid(script.pid()) || !told.insert(pid).second) continue;
        ::kill(pid, number);
        more = true;
      }
    }
  }
  void check_end(int code) {
    BOOST_REQUIRE_MESSAGE(script.wait_end(), script.output() << script.errors());
    BOOST_TEST(script.code() == code, script.errors());
    BOOST_TEST(script.wait_descendants(0), "a process is left behind");
    BOOST_TEST(std::filesystem::is_empty(files.path()), "a file is left behind");
  }

  temporary_folder folder;
  temporary_folder files;
  program script;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(quickstart_script)

BOOST_AUTO_TEST_CASE(tells_a_story_and_what_it_cost) {
  quickstart run;
  run.check_end(0);
  BOOST_TEST(contains(run.script.output(), "> Tell me a story about a cat."));
  BOOST_TEST(contains(run.script.output(), "front -> back"), run.script.output());
}

BOOST_DATA_TEST_CASE(ends_while_it_streams, data::make({SIGINT, SIGTERM, SIGHUP}), number) {
  quickstart run;
  BOOST_REQUIRE(run.script.wait_output(" a cat.\n\nOne day"));
  run.interrupt(number);
  run.check_end(128 + number);
}

BOOST_AUTO_TEST_CASE(ends_while_it_starts) {
  quickstart run;
  BOOST_REQUIRE(run.script.wait_descendants(1));
  run.interrupt(SIGINT);
  run.check_end(128 + SIGINT);
}

BOOST_AUTO_TEST_CASE(that_keeps_its_server_ends_with_ctrl_c) {
  quickstart run({"--keep"});
  BOOST_REQUIRE(run.script.wait_output("until Ctrl-C"));
  run.interrupt(SIGINT);
  run.check_end(128 + SIGINT);
}

BOOST_AUTO_TEST_SUITE_END()
