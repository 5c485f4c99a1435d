// Goal: whoever dies or stops at whatever moment is named within two seconds, the command ends with
// an error, and no process and no file is left behind. Method: signals to real processes,
// mid-answer and all along the start.
#include <signal.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <thread>

#include "tests/integration/support/golden_prompt.hpp"
#include "tests/integration/support/program.hpp"
#include "tests/integration/support/topology_text.hpp"

using namespace cedar::test;
namespace data = boost::unit_test::data;

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds named_within = 2s;
const std::string node1 = "'node1'";
const std::string lost_node1 = "lost node 'node1' (stage 'stage1' layers 6-11, head)";

std::chrono::milliseconds since(clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begin);
}

/// Temporary files of the programs that a test starts go to a folder of its own.
class temporary_files {
 public:
  temporary_files() {
    if (const char* old = std::getenv("TMPDIR")) before_ = old;
    ::setenv("TMPDIR", folder_.path().c_str(), 1);
  }
  ~temporary_files() {
    if (before_.empty())
      ::unsetenv("TMPDIR");
    else
      ::setenv("TMPDIR", before_.c_str(), 1);
  }
  temporary_files(const temporary_files&) = delete;
  temporary_files& operator=(const temporary_files&) = delete;

  bool empty() const { return std::filesystem::is_empty(folder_.path()); }

 private:
  std::string before_;
  temporary_folder folder_;
};

/// A long answer through two processes.
struct long_run {
  explicit long_run(const topology_options& options = {}, const std::string& prompt = "Once upon")
      : client(CEDAR_PROGRAM,
               {"run", "--topology", folder.write("t.yaml", topology_text(options)).string(), "-m",
                checkpoint_of("cedar-tiny").string(), "-p", prompt, "--ignore-eos", "--max-tokens",
                "1900", "--verbose"}) {}

  /// The other process, once it has become `cedar node`. (Before that the client waits for it.)
  pid_t node() {
    const auto until = clock::now() + patience;
    while (clock::now() < until) {
      BOOST_REQUIRE(client.wait_descendants(1));
      for (const pid_t pid : client.descendants())
        if (contains(read_file("/proc/" + std::to_string(pid) + "/cmdline"), "--parent"))
          return pid;
    }
    BOOST_FAIL("no other process");
    return -1;
  }

  temporary_folder folder;
  temporary_files files;
  program client;
};

/// The client must end with `code` within `limit`, say `what`, and leave nothing.
void check_end(long_run& run, int code, const std::string& what, std::chrono::milliseconds limit) {
  const auto begin = clock::now();
  BOOST_REQUIRE_MESSAGE(run.client.wait_end(limit), "still runs; said " << run.client.errors());
  BOOST_TEST_MESSAGE("ended after " << since(begin).count() << " ms");
  BOOST_TEST(run.client.code() == code);
  BOOST_TEST(contains(run.client.errors(), what), run.client.errors());
  BOOST_TEST(run.client.wait_descendants(0, 0ms), "a process is left behind");
  BOOST_TEST(run.files.empty(), "a temporary file is left behind");
}

/// Moments after the second process was started, over a start that takes some 200 ms.
const std::vector<int> moments_ms{0, 5, 10, 20, 40, 60, 80, 100, 130, 160, 200, 300};

}  // namespace

BOOST_AUTO_TEST_SUITE(lost_node)

BOOST_DATA_TEST_CASE(is_named_when_it_ends_mid_answer, data::make({SIGKILL, SIGSTOP, SIGTERM}),
                     number) {
  for (const bool shared_memory : {false, true}) {
    topology_options options;
    options.shared_memory = shared_memory;
    long_run run(options);
    const pid_t node = run.node();
    BOOST_REQUIRE(run.client.wait_output(" "));
    BOOST_REQUIRE(::kill(node, number) == 0);
    check_end(run, 1, lost_node1, named_within);
  }
}

BOOST_DATA_TEST_CASE(is_named_when_it_ends_in_the_prompt, data::make({SIGKILL, SIGSTOP}), number) {
  std::string prompt;
  for (int i = 0; i < 300; ++i) prompt += "a cat and a dog ";
  topology_options options;
  options.more = "limits: {rows_per_step: 8}";
  long_run run(options, prompt);
  const pid_t node = run.node();
  BOOST_REQUIRE(run.client.wait_errors("ready"));
  BOOST_REQUIRE(::kill(node, number) == 0);
  check_end(run, 1, lost_node1, named_within);
  BOOST_TEST(run.client.output() == "");
}

BOOST_DATA_TEST_CASE(is_named_when_it_holds_nothing_but_experts, data::make({SIGKILL, SIGSTOP}),
                     number) {
  topology_options options;
  options.cuts = {};
  options.experts = "worker";
  long_run run(options);
  const pid_t node = run.node();
  BOOST_REQUIRE(run.client.wait_output(" "));
  BOOST_REQUIRE(::kill(node, number) == 0);
  check_end(run, 1, "lost node 'worker' (experts 'half')", named_within);
}

BOOST_DATA_TEST_CASE(is_named_when_it_dies_while_starting, data::make(moments_ms), moment) {
  long_run run;
  const pid_t node = run.node();
  std::this_thread::sleep_for(std::chrono::milliseconds(moment));
  BOOST_REQUIRE(::kill(node, SIGKILL) == 0);
  check_end(run, 1, node1, named_within);
}

BOOST_DATA_TEST_CASE(is_named_when_it_stops_while_starting, data::make({0, 20, 50, 80, 120, 200}),
                     moment) {
  topology_options options;
  options.more = "deadlines_ms: {start: 1000}";
  long_run run(options);
  const pid_t node = run.node();
  std::this_thread::sleep_for(std::chrono::milliseconds(moment));
  BOOST_REQUIRE(::kill(node, SIGSTOP) == 0);
  check_end(run, 1, node1, 1000ms + named_within);
}

BOOST_AUTO_TEST_CASE(of_three_is_the_one_that_is_named) {
  topology_options options;
  options.cuts = {3, 5};
  long_run run(options);
  BOOST_REQUIRE(run.client.wait_descendants(2));
  BOOST_REQUIRE(run.client.wait_output(" "));
  // "node 'node1' started as process 4711"
  const std::string start = "node 'node1' started as process ";
  const std::string text = run.client.errors();
  BOOST_REQUIRE(contains(text, start));
  const auto node = static_cast<pid_t>(std::stol(text.substr(text.find(start) + start.size())));
  BOOST_REQUIRE(::kill(node, SIGKILL) == 0);
  check_end(run, 1, "lost node 'node1' (stage 'stage1' layers 4-5)", named_within);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(client)

BOOST_DATA_TEST_CASE(is_interrupted_mid_answer, data::make({SIGINT, SIGTERM, SIGHUP}), number) {
  long_run run;
  BOOST_REQUIRE(run.client.wait_output(" "));
  run.client.signal(number);
  check_end(run, 130, "interrupted", 1s);
}

BOOST_DATA_TEST_CASE(is_interrupted_again_and_again, data::make({SIGTERM, SIGHUP}), number) {
  long_run run;
  BOOST_REQUIRE(run.client.wait_output(" "));
  const auto until = clock::now() + patience;
  do {
    run.client.signal(number);
  } while (!run.client.wait_end(1ms) && clock::now() < until);
  // Not 128 + number: it ended by itself.
  check_end(run, 130, "interrupted", 0ms);
}

BOOST_AUTO_TEST_CASE(goes_on_without_its_terminal_when_told_to) {
  // As nohup does.
  const auto before = ::signal(SIGHUP, SIG_IGN);
  long_run run;
  ::signal(SIGHUP, before);
  BOOST_REQUIRE(run.client.wait_output(" "));
  run.client.signal(SIGHUP);
  check_end(run, 0, "", patience);
}

BOOST_DATA_TEST_CASE(is_interrupted_while_starting, data::make(moments_ms), moment) {
  long_run run;
  run.node();
  std::this_thread::sleep_for(std::chrono::milliseconds(moment));
  run.client.signal(SIGINT);
  check_end(run, 130, "interrupted", 1s);
}

BOOST_DATA_TEST_CASE(is_interrupted_while_a_node_is_stopped, data::make({0, 50, 100, 150, 200}),
                     moment) {
  long_run run;
  const pid_t node = run.node();
  std::this_thread::sleep_for(std::chrono::milliseconds(moment));
  BOOST_REQUIRE(::kill(node, SIGSTOP) == 0);
  run.client.signal(SIGINT);
  check_end(run, 130, "interrupted", 1s);
}

BOOST_DATA_TEST_CASE(takes_its_nodes_along_when_it_is_killed, data::make({0, 30, 60, 100, -1}),
                     moment) {
  long_run run;
  run.node();
  if (moment < 0)
    BOOST_REQUIRE(run.client.wait_output(" "));
  else
    std::this_thread::sleep_for(std::chrono::milliseconds(moment));
  run.client.signal(SIGKILL);
  BOOST_REQUIRE(run.client.wait_end(named_within));
  BOOST_TEST(run.client.wait_descendants(0, named_within), "a process is left behind");
  BOOST_TEST(run.files.empty(), "a temporary file is left behind");
}

BOOST_AUTO_TEST_CASE(that_stops_is_left_by_its_nodes) {
  long_run run;
  run.node();
  BOOST_REQUIRE(run.client.wait_output(" "));
  run.client.signal(SIGSTOP);
  BOOST_TEST(run.client.wait_descendants(0, named_within), "the node waits for ever");
  run.client.signal(SIGCONT);
  check_end(run, 1, lost_node1, named_within);
}

BOOST_AUTO_TEST_SUITE_END()
